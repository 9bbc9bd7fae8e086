"""How far the download of Kafka's jars is: a bar on a terminal, now and then a line elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from stack.lock_file import LockedJar

Arrived = Callable[[LockedJar], None]
_SILENCE_SECONDS = 10


@contextmanager
def show_progress(missing: list[LockedJar]) -> Iterator[Arrived]:
    """Yields what to call with each jar that has arrived."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield LinesOfProgress(len(missing), sum(jar.size for jar in missing)).arrived
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[jars]} jars"),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        title = "Fetching Kafka (once per user)"
        task = bar.add_task(title, total=sum(jar.size for jar in missing), jars=f"0/{len(missing)}")
        seen: list[LockedJar] = []

        def arrived(jar: LockedJar) -> None:
            seen.append(jar)
            bar.update(task, advance=jar.size, jars=f"{len(seen)}/{len(missing)}")

        yield arrived


@dataclass(slots=True)
class LinesOfProgress:
    """A line for each quarter of it, and after ten seconds without one."""

    jars: int
    size: int
    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = field(default=lambda line: print(line, flush=True))
    _jars: int = 0
    _size: int = 0
    _said_size: int = 0
    _said_at: float = 0.0

    def __post_init__(self) -> None:
        self._said_at = self.clock()
        self.say(f"Fetching Kafka, {self.jars} jars, {self.size / 1e6:.0f} MB (once per user)")

    def arrived(self, jar: LockedJar) -> None:
        self._jars += 1
        self._size += jar.size
        is_last = self._jars == self.jars
        is_much = (self._size - self._said_size) * 4 >= self.size
        if is_last or is_much or self.clock() - self._said_at >= _SILENCE_SECONDS:
            self._said_size, self._said_at = self._size, self.clock()
            self.say(f"  {self._jars} of {self.jars} jars, {self._size / 1e6:.0f} MB")

"""The output of the stack: messages, log lines, the progress of the first download, and the banner when it is ready."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from stack.errors import StackError

_SILENCE_SECONDS = 10

COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
BOLD, RED = 1, 31


class Console:
    """Writes to standard output. If nobody reads it any more, it becomes silent and the stack keeps running."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._colour_of: dict[str, int] = {}
        self._width = 0

    def name_processes(self, names: Iterable[str]) -> None:
        """Give each process a colour, and pad all names to one width."""
        for name in names:
            self._colour_of[name] = COLOURS[len(self._colour_of) % len(COLOURS)]
            self._width = max(self._width, len(name))

    def info(self, text: str) -> None:
        self._write(f"{self._paint('stack', BOLD)} {text}")

    def warn(self, text: str) -> None:
        self._write(f"{self._paint('stack', BOLD)} {self._paint(text, RED)}")

    def print(self, lines: str) -> None:
        self._write(lines)

    def log_line(self, name: str, line: str) -> None:
        self._write(f"{self._paint(name.ljust(self._width), self._colour_of.get(name, BOLD))} | {line}")

    def print_error(self, error: StackError) -> None:
        self.warn(error.problem)
        self.info(error.remedy)

    def _paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text

    @staticmethod
    def _write(line: str) -> None:
        try:
            print(line, flush=True)
        except OSError:
            # The terminal was closed, or the reader of the pipe has exited.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def banner(
    addresses: Mapping[str, str], demo: Mapping[str, str], stack_file: Path, logs: Path, seconds: float
) -> str:
    rows = {key.removesuffix("_url").replace("_", " "): address for key, address in addresses.items()}
    rows |= {"logs": str(logs), "all this as JSON": str(stack_file)}
    width = max(len(name) for name in rows)
    lines = [f"  {name.ljust(width)}  {value}" for name, value in rows.items()]
    title = f"  Mizan is ready ({seconds:.1f} s). Ctrl-C stops everything."
    return "\n".join(["", title, "", *lines, "", *(_first_steps(addresses, demo) if demo else [])])


def _first_steps(addresses: Mapping[str, str], demo: Mapping[str, str]) -> list[str]:
    return [
        f"  First, buy a coffee: open {addresses['shop_url']} (add ?lang=en for English)",
        "    and pay with card 4242 4242 4242 4242, any future date and any security code.",
        f"  See the payment and its webhook in the dashboard: sign in at {addresses['dashboard_url']}",
        f"    with {demo['owner_email']} and the password {demo['owner_password']}",
        f"  See everything in the monitor: sign in at {addresses['monitor_url']}",
        f"    with {demo['operator_email']} and the password {demo['operator_password']}",
        "",
        "  Or call the API yourself, and open the checkout_url of the response:",
        "",
        f"    curl {addresses['api_base_url']}/payment-intents \\",
        f"      -H 'X-API-Key: {demo['api_key']}' \\",
        f"      -H 'Authorization: Bearer {demo['access_token']}' \\",
        """      -d '{"merchant_reference": "order-1", "amount": 25000, "currency": "LYD"}'""",
        "",
    ]


OnDownloaded = Callable[[int], None]
"""Called with the size of each jar that was downloaded."""


@contextmanager
def show_progress(sizes: list[int]) -> Iterator[OnDownloaded]:
    """Show the progress of downloading jars of these sizes. Yields the function to call after each of them."""
    if not sys.stderr.isatty():
        yield ProgressLines(len(sizes), sum(sizes)).downloaded
        return
    with click.progressbar(
        length=sum(sizes), label="Downloading Kafka (once per user)", file=sys.stderr
    ) as bar:
        yield bar.update


@dataclass(slots=True)
class ProgressLines:
    """Prints a line after each quarter of the bytes, and after ten seconds without a line."""

    jars: int
    size: int
    clock: Callable[[], float] = time.monotonic
    write: Callable[[str], None] = field(default=lambda line: print(line, flush=True))
    _jars: int = 0
    _size: int = 0
    _reported_size: int = 0
    _reported_at: float = 0.0

    def __post_init__(self) -> None:
        self._reported_at = self.clock()
        self.write(f"Downloading Kafka, {self.jars} jars, {self.size / 1e6:.0f} MB (once per user)")

    def downloaded(self, size: int) -> None:
        self._jars += 1
        self._size += size
        is_last = self._jars == self.jars
        is_quarter = (self._size - self._reported_size) * 4 >= self.size
        if is_last or is_quarter or self.clock() - self._reported_at >= _SILENCE_SECONDS:
            self._reported_size, self._reported_at = self._size, self.clock()
            self.write(f"  {self._jars} of {self.jars} jars, {self._size / 1e6:.0f} MB")

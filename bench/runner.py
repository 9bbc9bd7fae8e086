"""Runs measurements one after the other: shows progress, stores each figure at once, and survives one that fails."""

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from bench.figures import Figure
from bench.world import World

Measure = Callable[[World], Iterable[Figure]]

_REMINDER_S = 15.0
"""A measurement that yields nothing for minutes is mentioned this often."""


class UnknownMeasurementError(Exception):
    """The text lists the measurements that exist."""


def select_measurements(measurements: Mapping[str, Measure], names: str) -> dict[str, Measure]:
    """Return the measurements with these comma-separated names, in their usual order; without names, all of them.

    Raises UnknownMeasurementError.
    """
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(wanted - measurements.keys())
    if unknown:
        raise UnknownMeasurementError(
            f"there is no measurement {' and no '.join(unknown)}. There are: {', '.join(measurements)}"
        )
    return {name: measure for name, measure in measurements.items() if not wanted or name in wanted}


class FigureFile:
    """bench.json: the figures by name. It is replaced as a whole at each change, so it is never half written."""

    def __init__(self, path: Path, *, keeps_others: bool) -> None:
        """With `keeps_others`, the figures of an earlier run stay until they are measured again."""
        self.path = path
        self._values: dict[str, float] = _read(path) if keeps_others else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write()

    def add(self, figure: Figure) -> None:
        self._values[figure.name] = figure.value
        self._write()

    def _write(self) -> None:
        partial = self.path.with_name(f".{self.path.name}.new")
        partial.write_text(json.dumps(self._values, indent=2) + "\n")
        partial.replace(self.path)


def _read(path: Path) -> dict[str, float]:
    """Return the figures of an earlier run; none if the file is missing or was damaged."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Runner:
    def __init__(self, file: FigureFile, show: Callable[[str], None]) -> None:
        self._file = file
        self._show = show
        self._started = monotonic()
        self.figures: list[Figure] = []
        self.failed: list[str] = []
        """The measurements that raised an error. What they had yielded before it counts."""

    def run(self, measurements: Mapping[str, Measure], world: World) -> None:
        """Run all of them. An error ends its own measurement only."""
        for number, (name, measure) in enumerate(measurements.items(), 1):
            left = len(measurements) - number
            self._show(f"{name}: {number} of {len(measurements)}, {left} more to come, {self._elapsed()}")
            with self._reminders(name, left):
                try:
                    for figure in measure(world):
                        self.add(figure)
                except Exception:  # noqa: BLE001  the others can still be measured
                    self.failed.append(name)
                    self._show(f"{name} failed, {self._elapsed()}:\n{traceback.format_exc().rstrip()}")

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)
        self._file.add(figure)
        self._show(f"  {figure.name} {format_value(figure)}")

    @contextmanager
    def _reminders(self, name: str, left: int) -> Iterator[None]:
        """Say now and then that the measurement is still running."""
        ended = Event()

        def remind() -> None:
            while not ended.wait(_REMINDER_S):
                self._show(f"  … still measuring {name}, {left} more to come, {self._elapsed()}")

        thread = Thread(target=remind, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(monotonic() - self._started), 60)
        return f"{minutes}:{seconds:02} elapsed"


def format_value(figure: Figure) -> str:
    return f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}"


def format_table(figures: Sequence[Figure]) -> str:
    width = max((len(figure.name) for figure in figures), default=0)
    return "\n".join(
        f"{figure.name:{width}}  {format_value(figure):>10}  {figure.meaning}" for figure in figures
    )

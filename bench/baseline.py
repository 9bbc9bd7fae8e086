"""The committed figures that a run is compared with: ratios, because a busy machine slows both sides of one."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from bench.figures import Figure

PATH = Path(__file__).parent / "baseline.json"


class Expected(msgspec.Struct, frozen=True):
    value: float
    noise: float
    """By which share of the value runs of the same code differ."""
    is_higher_better: bool

    def is_worse(self, measured: float) -> bool:
        """Return whether the figure got worse by more than its noise."""
        change = measured / self.value - 1
        return -change > self.noise if self.is_higher_better else change > self.noise


def read_baseline(path: Path = PATH) -> dict[str, Expected]:
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Expected])


def describe_worse(figures: Iterable[Figure], baseline: Mapping[str, Expected]) -> Iterator[str]:
    """Yield a line for each figure that got worse."""
    for figure in figures:
        expected = baseline.get(figure.name)
        if expected is not None and expected.is_worse(figure.value):
            yield f"{figure.name} {figure.value:.3g}, was {expected.value:.3g} ± {expected.noise:.0%}"

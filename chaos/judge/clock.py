"""The product's clock: the machine's clock plus all jumps so far. During a jump, either side is possible."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import inf

from chaos.history import ClockMoved


class ProductClock:
    """Converts between both clocks. Raises ValueError if the clock was moved back."""

    def __init__(self, moves: Iterable[ClockMoved]) -> None:
        moves = list(moves)
        if any(move.seconds < 0 for move in moves):
            raise ValueError("the product's clock was moved back, which no rule allows for")
        self._slowest = _Steps(sorted((move.at, move.seconds) for move in moves))
        self._fastest = _Steps(sorted((move.began_at, move.seconds) for move in moves))

    def lowest(self, at: float) -> float:
        """Return the least that the clock can have shown at this time of the machine."""
        return self._slowest.reading(at)

    def highest(self, at: float) -> float:
        """Return the most that the clock can have shown at this time of the machine."""
        return self._fastest.reading(at)

    def reached_at(self, reading: float) -> float:
        """Return the first time of the machine at which the clock can have shown this, or later."""
        return self._fastest.first_time(reading)

    def left_at(self, reading: float) -> float:
        """Return the last time of the machine at which the clock can have shown this, or earlier."""
        return self._slowest.last_time(reading)


class _Steps:
    """A clock that jumps forward at known times."""

    def __init__(self, jumps: Sequence[tuple[float, float]]) -> None:
        self._times = [at for at, _ in jumps]
        self._offsets = [0.0, *accumulate(seconds for _, seconds in jumps)]
        self._before = [at + offset for at, offset in zip(self._times, self._offsets, strict=False)]
        """What the clock showed just before each jump."""
        self._after = [at + offset for at, offset in zip(self._times, self._offsets[1:], strict=True)]

    def reading(self, at: float) -> float:
        return at + self._offsets[bisect_right(self._times, at)]

    def first_time(self, reading: float) -> float:
        jumps = bisect_left(self._before, reading)
        begin = self._times[jumps - 1] if jumps else -inf
        return max(begin, reading - self._offsets[jumps])

    def last_time(self, reading: float) -> float:
        jumps = bisect_right(self._after, reading)
        end = self._times[jumps] if jumps < len(self._times) else inf
        return min(end, reading - self._offsets[jumps])

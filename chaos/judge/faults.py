"""When faults were under way, and which of them excuse what."""

from bisect import bisect_right
from collections.abc import Iterable
from math import inf

from chaos.history import ClockMoved, FaultBegan, FaultEnded

BEFORE_SECONDS = 15.0
"""A fault can hit what began this long before it: a request takes up to 10 s, and is recorded after that."""
AFTER_SECONDS = 60.0
"""What a fault left behind is cleared up within this time: Kafka waits 45 s for a member of a group that is gone."""
_CLOCK = "clock"


class FaultPeriods:
    """The times around faults. A fault whose end was not recorded lasts until the load stopped."""

    def __init__(
        self,
        began: Iterable[FaultBegan],
        ended: Iterable[FaultEnded],
        moves: Iterable[ClockMoved] = (),
        load_stopped_at: float = inf,
    ) -> None:
        end_of = {end.number: end.at for end in ended}
        periods = [
            (
                fault.at - BEFORE_SECONDS,
                end_of.get(fault.number, load_stopped_at) + AFTER_SECONDS,
                fault.fault,
            )
            for fault in began
        ]
        jumps = [(move.began_at - BEFORE_SECONDS, move.at + AFTER_SECONDS) for move in moves]
        self._any = _Periods([(begin, end) for begin, end, _ in periods] + jumps)
        self._of_processes = _Periods((begin, end) for begin, end, kind in periods if _CLOCK not in kind)

    def is_around(self, begin: float, end: float) -> bool:
        """Return whether any fault was around at some time between `begin` and `end`."""
        return self._any.overlap(begin, end)

    def process_or_network_is_around(self, begin: float, end: float) -> bool:
        """Return the same without jumps of the clock: nothing fails because it is later."""
        return self._of_processes.overlap(begin, end)


class _Periods:
    """A set of times, as periods that do not overlap."""

    def __init__(self, periods: Iterable[tuple[float, float]]) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        for begin, end in sorted(periods):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def overlap(self, begin: float, end: float) -> bool:
        last = bisect_right(self._begins, end) - 1
        return last >= 0 and self._ends[last] >= begin

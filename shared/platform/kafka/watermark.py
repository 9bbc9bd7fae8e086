"""Up to which offset a partition is finished without a gap, while its records finish in any order. Pure."""

from collections import deque


class Watermark:
    def __init__(self) -> None:
        self._order: deque[tuple[int, float]] = deque()
        self._unfinished: set[int] = set()
        self.position: int | None = None
        """The offset to commit: everything before it is finished. None before the first record."""

    def start(self, offset: int, timestamp: float = 0.0) -> None:
        if self.position is None:
            self.position = offset
        self._order.append((offset, timestamp))
        self._unfinished.add(offset)

    def finish(self, offset: int) -> None:
        """Mark an offset as finished. A second call, or an offset that was never started, changes nothing."""
        self._unfinished.discard(offset)
        while self._order and self._order[0][0] not in self._unfinished:
            self.position = self._order.popleft()[0] + 1

    @property
    def unfinished(self) -> int:
        return len(self._unfinished)

    @property
    def oldest_timestamp(self) -> float | None:
        """The timestamp of the first unfinished record; None when all are finished."""
        return self._order[0][1] if self._order else None

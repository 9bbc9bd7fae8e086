"""How far a partition is done without a gap, when its records finish in any order. Pure."""

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
        """Twice is harmless, and so is an offset that was never started."""
        self._unfinished.discard(offset)
        while self._order and self._order[0][0] not in self._unfinished:
            self.position = self._order.popleft()[0] + 1

    @property
    def unfinished(self) -> int:
        return len(self._unfinished)

    @property
    def oldest_timestamp(self) -> float | None:
        """Of the first record that is not finished; None when all are."""
        return self._order[0][1] if self._order else None

"""What waits for the two stages of a lane."""

from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

from services.webhooks.recording import Answered, Result
from services.webhooks.tries import Try

_RECORD_BYTES = 4 * 1024 * 1024
# Recording more at once costs less; nobody waits for it but the offsets.
_RECORD_AFTER_S = 0.04


class ToLook:
    """In the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[Try] = deque()

    def add(self, one: Try) -> None:
        self._waiting.append(one)

    def next_batch(self, limit: int) -> list[Try]:
        return [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]

    def put_back(self, items: Sequence[Try]) -> None:
        self._waiting.extendleft(reversed(items))

    def leave(self, unwanted: Callable[[Try], bool]) -> list[Try]:
        gone = [one for one in self._waiting if unwanted(one)]
        self._waiting = deque(one for one in self._waiting if not unwanted(one))
        return gone


class ToRecord:
    """Until there are many, or some have waited for a moment."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._waiting: deque[tuple[Try, Result]] = deque()
        self._since = 0.0
        self._bytes = 0

    def add(self, one: Try, result: Result) -> None:
        if not self._waiting:
            self._since = monotonic()
        self._waiting.append((one, result))
        self._bytes += _size(result)

    def next_batch(self, limit: int) -> list[tuple[Try, Result]]:
        """Of each delivery at most one; a second one waits for the next batch."""
        if not self._is_time():
            return []
        batch: dict[str, tuple[Try, Result]] = {}
        again: list[tuple[Try, Result]] = []
        size = 0
        while self._waiting and len(batch) < limit and size < _RECORD_BYTES:
            one, result = self._waiting.popleft()
            if one.delivery_id in batch:
                again.append((one, result))
            else:
                batch[one.delivery_id] = one, result
                size += _size(result)
        self._bytes -= size
        self._waiting.extendleft(reversed(again))
        self._since = monotonic()
        return list(batch.values())

    def put_back(self, items: Sequence[tuple[Try, Result]]) -> None:
        self._waiting.extendleft(reversed(items))
        self._bytes += sum(_size(result) for _, result in items)
        self._since = 0.0

    def _is_time(self) -> bool:
        if not self._waiting:
            return False
        return (
            len(self._waiting) >= self._enough
            or self._bytes >= _RECORD_BYTES
            or monotonic() - self._since >= _RECORD_AFTER_S
        )


def _size(result: Result) -> int:
    return len(result.answer.body) if isinstance(result, Answered) else 0

"""How many items to process at once: fewer after a failure, until the one that fails is alone."""

_FACTOR = 10
_SUCCESSES_TO_GROW = 10


class BatchSize:
    """A tenth after each failed batch, down to one; ten times as many after ten successes, up to `largest`."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._successes = 0
        self.current = largest

    def shrink(self, failed: int) -> None:
        """A batch of `failed` items has failed."""
        self.current, self._successes = max(1, failed // _FACTOR), 0

    def count_success(self) -> None:
        if self.current == self._largest:
            return
        self._successes += 1
        if self._successes >= _SUCCESSES_TO_GROW:
            self.current, self._successes = min(self._largest, _FACTOR * self.current), 0

"""A cache for expensive results. The longer a result took to compute, the longer it stays valid.

However often somebody reloads a page, computing takes at most a twentieth of one connection's time.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")

_TTL_FACTOR = 20
_MAX_ENTRIES = 200


class _CacheEntry(Generic[T]):
    __slots__ = ("expires_at", "lock", "value")

    def __init__(self) -> None:
        self.lock = Lock()
        self.value: T | None = None
        self.expires_at = 0.0


class TtlCache(Generic[T]):
    """Shared by the threads of one process. Threads that need the same key at the same time compute it once."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._entries: OrderedDict[Hashable, _CacheEntry[T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached value, or compute it. What `compute` raises is passed on, and nothing is cached."""
        entry = self._entry(key)
        with entry.lock:
            started = self._clock()
            if entry.value is None or started >= entry.expires_at:
                entry.value = compute()
                finished = self._clock()
                entry.expires_at = finished + _TTL_FACTOR * (finished - started)
            return entry.value

    def _entry(self, key: Hashable) -> _CacheEntry[T]:
        with self._lock:
            entry = self._entries.setdefault(key, _CacheEntry())
            self._entries.move_to_end(key)
            while len(self._entries) > _MAX_ENTRIES:
                self._entries.popitem(last=False)
            return entry

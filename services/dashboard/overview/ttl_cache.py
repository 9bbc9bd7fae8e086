"""Keeps what was costly to find out for a little while: the longer it took, the longer it is kept.

So however often somebody reloads a page, counting takes a twentieth of one connection's time at most.
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
    __slots__ = ("good_until", "lock", "value")

    def __init__(self) -> None:
        self.lock = Lock()
        self.value: T | None = None
        self.good_until = 0.0


class TtlCache(Generic[T]):
    """For the threads of one process. Those that ask for the same at one time wait for the first of them."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._places: OrderedDict[Hashable, _CacheEntry[T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, find_out: Callable[[], T]) -> T:
        place = self._place(key)
        with place.lock:
            began = self._clock()
            if place.value is None or began >= place.good_until:
                place.value = find_out()
                ended = self._clock()
                place.good_until = ended + _TTL_FACTOR * (ended - began)
            return place.value

    def _place(self, key: Hashable) -> _CacheEntry[T]:
        with self._lock:
            place = self._places.setdefault(key, _CacheEntry())
            self._places.move_to_end(key)
            while len(self._places) > _MAX_ENTRIES:
                self._places.popitem(last=False)
            return place

"""Data keys of one purpose in memory, so that no call of the KMS stands in the path of a payment or a webhook."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from shared.platform.encryption import DecryptionError, KeysUnavailableError
from shared.platform.keys.transit_client import DataKey, TransitClient, wrapped_version
from shared.platform.settings import TransitSettings

MAX_TEXTS: Final = 100_000
"""How many texts one data key encrypts, far below what AES-GCM allows with random nonces."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _CachedKey:
    key: DataKey
    since: float
    texts: int = 0


class DataKeys:
    """Makes and unwraps data keys, and keeps up to `cache_size` of them for up to `cache_s` seconds.

    A key that is used is renewed in the background after half of that time, so that whoever uses it does not wait, and
    an outage of the KMS that is shorter than the other half is not noticed. Methods raise KeysUnavailableError if a
    key is not in memory and the KMS is away.
    """

    def __init__(
        self,
        client: TransitClient,
        name: str,
        settings: TransitSettings,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name = name
        self._client = client
        self._settings = settings
        self._clock = clock
        self._current: _CachedKey | None = None
        self._unwrapped: OrderedDict[str, _CachedKey] = OrderedDict()
        self._rewrapped: dict[str, str] = {}
        self._lock = threading.Lock()
        """Held for an instant, never during a call."""
        self._calling = threading.Lock()
        """Held during a call that somebody waits for: threads that miss the same key make one call."""
        self._renewing: set[str] = set()

    def current(self) -> DataKey:
        """Return the data key that encrypts now."""
        key = self._use_current()
        if key is None:
            with self._calling:
                key = self._use_current() or self._make_current()
        return key

    def unwrap(self, wrapped: str) -> bytes:
        """Return the data key of a stored text. Raises DecryptionError if the KMS cannot decrypt it."""
        plain = self._find(wrapped)
        if plain is None:
            with self._calling:
                plain = self._find(wrapped) or self._fetch(wrapped)
        return plain

    def rewrap(self, wrapped: str) -> str:
        """Return the data key wrapped with the newest version. Texts that share a data key share the call."""
        if wrapped not in self._rewrapped:
            if len(self._rewrapped) >= self._settings.cache_size:
                self._rewrapped.clear()
            self._rewrapped[wrapped] = self._client.rewrap(self.name, wrapped)
        return self._rewrapped[wrapped]

    def newest_version(self) -> int:
        """Return the newest version of the KMS's key, as of the data key that encrypts now."""
        return wrapped_version(self.current().wrapped)

    def _use_current(self) -> DataKey | None:
        with self._lock:
            cached = self._current
            if cached is None or cached.texts >= MAX_TEXTS or self._age(cached) >= self._settings.cache_s:
                return None
            cached.texts += 1
        self._renew_if_due(cached, "current", self._make_current)
        return cached.key

    def _make_current(self) -> DataKey:
        key = self._client.create_data_key(self.name)
        with self._lock:
            self._current = _CachedKey(key, self._clock())
        self._keep(key)
        return key

    def _find(self, wrapped: str) -> bytes | None:
        with self._lock:
            cached = self._unwrapped.get(wrapped)
            if cached is None:
                return None
            if self._age(cached) >= self._settings.cache_s:
                del self._unwrapped[wrapped]
                return None
            self._unwrapped.move_to_end(wrapped)
        self._renew_if_due(cached, wrapped, lambda: self._fetch(wrapped))
        return cached.key.plain

    def _fetch(self, wrapped: str) -> bytes:
        plain = self._client.decrypt(self.name, wrapped)
        self._keep(DataKey(plain, wrapped))
        return plain

    def _keep(self, key: DataKey) -> None:
        with self._lock:
            self._unwrapped[key.wrapped] = _CachedKey(key, self._clock())
            self._unwrapped.move_to_end(key.wrapped)
            while len(self._unwrapped) > self._settings.cache_size:
                self._unwrapped.popitem(last=False)

    def _age(self, cached: _CachedKey) -> float:
        return self._clock() - cached.since

    def _renew_if_due(self, cached: _CachedKey, what: str, renew: Callable[[], object]) -> None:
        if self._age(cached) < self._settings.cache_s / 2:
            return
        with self._lock:
            if what in self._renewing:
                return
            self._renewing.add(what)
        threading.Thread(target=self._renew, args=(what, renew), name="kms-renewal", daemon=True).start()

    def _renew(self, what: str, renew: Callable[[], object]) -> None:
        try:
            renew()
        except (KeysUnavailableError, DecryptionError) as error:
            _log.warning("%s: a data key in memory could not be renewed: %s", self.name, error)
        finally:
            with self._lock:
                self._renewing.discard(what)

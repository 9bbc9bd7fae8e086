"""The key provider for a KMS that speaks the Transit API of HashiCorp Vault."""

import logging
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

from shared.platform.backoff import backoff_delay
from shared.platform.encryption import KeysUnavailableError, SecretBox
from shared.platform.keys.data_keys import DataKeys
from shared.platform.keys.envelope import EnvelopeCipher
from shared.platform.keys.provider import LocalKeyProvider, all_keys_of, key_variables
from shared.platform.keys.transit_client import TransitClient
from shared.platform.settings import KeyPurpose, Settings, TransitSettings

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class TransitKeyProvider:
    """Takes the keys of stored texts from a KMS. Local keys decrypt what they have encrypted before."""

    def __init__(self, settings: Settings, transit: TransitSettings) -> None:
        self._settings = settings
        self._transit = transit
        self._local = LocalKeyProvider(settings)
        self._client = TransitClient(transit)

    def open_box(self, purpose: KeyPurpose) -> SecretBox:
        if purpose is KeyPurpose.SESSIONS:
            return self._local.open_box(purpose)
        encrypts = self._transit.encrypts
        keys = all_keys_of(self._settings, purpose) if encrypts else self._local.keys_of(purpose)
        data_keys = DataKeys(self._client, self._name(purpose), self._transit)
        return SecretBox(
            keys,
            variables=key_variables(purpose),
            envelopes=EnvelopeCipher(data_keys),
            uses_envelopes=encrypts,
        )

    def derive(self, purpose: KeyPurpose, label: str) -> bytes:
        if purpose is KeyPurpose.SESSIONS or not self._transit.encrypts:
            return self._local.derive(purpose, label)
        return self._wait_for(lambda: self._client.derive(self._name(purpose), label))

    def cookie_keys(self) -> tuple[str, ...]:
        return self._local.cookie_keys()

    def check(self) -> None:
        self._wait_for(self._client.check)

    def _name(self, purpose: KeyPurpose) -> str:
        return f"{self._transit.key_prefix}{purpose.replace('_', '-')}"

    def _wait_for(self, call: Callable[[], _T]) -> _T:
        """Call it again while the KMS is away, for as long as a start may take."""
        deadline, failures = monotonic() + self._transit.start_s, 0
        while True:
            try:
                return call()
            except KeysUnavailableError as error:
                failures += 1
                pause = backoff_delay(failures)
                if monotonic() + pause > deadline:
                    raise
                _log.warning("%s; trying again in %.1f s", error, pause)
                sleep(pause)

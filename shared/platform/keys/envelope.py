"""Envelopes: texts encrypted with a data key, which a KMS has wrapped and which is stored with each text.

    m1.transit.<name of the KMS's key>.<wrapped data key>.<nonce and ciphertext>

The last two are base64url. What comes before the wrapped key is authenticated with the text. The wrapped key is not,
so that a newer version of the KMS's key can wrap it again without decrypting the text.
"""

import base64
import binascii
import os
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shared.platform.encryption import DecryptionError
from shared.platform.keys.data_keys import DataKeys
from shared.platform.keys.transit_client import wrapped_version

_FORMAT: Final = "m1"
_PROVIDER: Final = "transit"
_NONCE_BYTES: Final = 12
_MAX_LENGTH: Final = 100_000


@dataclass(frozen=True, slots=True)
class Envelope:
    name: str
    wrapped: str
    sealed: bytes = field(repr=False)
    """The nonce and the ciphertext."""

    def encode(self) -> str:
        return f"{_header(self.name)}.{_encode(self.wrapped.encode())}.{_encode(self.sealed)}"

    @classmethod
    def decode(cls, text: str) -> "Envelope":
        """Raises DecryptionError if it is no envelope of a format that this version knows."""
        parts = text.split(".")
        if len(text) > _MAX_LENGTH or len(parts) != 5 or parts[:2] != [_FORMAT, _PROVIDER]:
            raise DecryptionError("is an envelope of a format that this version does not know")
        try:
            return cls(parts[2], _decode(parts[3]).decode("ascii"), _decode(parts[4]))
        except (binascii.Error, ValueError):
            raise DecryptionError("is a damaged envelope") from None


class EnvelopeCipher:
    """Encrypts and decrypts the envelopes of one purpose. Raises KeysUnavailableError as DataKeys does."""

    def __init__(self, keys: DataKeys) -> None:
        self._keys = keys

    def encrypt(self, payload: bytes) -> str:
        key = self._keys.current()
        nonce = os.urandom(_NONCE_BYTES)
        header = _header(self._keys.name)
        sealed = AESGCM(key.plain).encrypt(nonce, payload, header.encode())
        return Envelope(self._keys.name, key.wrapped, nonce + sealed).encode()

    def decrypt(self, text: str) -> bytes:
        """Raises DecryptionError if it was changed, or belongs to another key."""
        envelope = self._open(text)
        key = self._keys.unwrap(envelope.wrapped)
        nonce, sealed = envelope.sealed[:_NONCE_BYTES], envelope.sealed[_NONCE_BYTES:]
        try:
            return AESGCM(key).decrypt(nonce, sealed, _header(envelope.name).encode())
        except (InvalidTag, ValueError):
            raise DecryptionError("was changed since it was encrypted") from None

    def is_newest(self, text: str) -> bool:
        """Tell whether its data key is wrapped with the newest version of the KMS's key."""
        return wrapped_version(self._open(text).wrapped) >= self._keys.newest_version()

    def rewrap(self, text: str) -> str:
        """Return the envelope with its data key wrapped by the newest version. The text stays encrypted."""
        envelope = self._open(text)
        return Envelope(envelope.name, self._keys.rewrap(envelope.wrapped), envelope.sealed).encode()

    def _open(self, text: str) -> Envelope:
        envelope = Envelope.decode(text)
        # Before the KMS is asked: whoever can write to the database must not choose the key that it uses.
        if envelope.name != self._keys.name:
            raise DecryptionError(f"was encrypted with another key of the KMS than {self._keys.name}")
        return envelope


def _header(name: str) -> str:
    return f"{_FORMAT}.{_PROVIDER}.{name}"


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)

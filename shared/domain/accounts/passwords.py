"""Passwords: stored as argon2id hashes, which take time and memory to compute, and verified with throttling."""

import hmac
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import urandom
from threading import BoundedSemaphore
from typing import Any, Generic, Protocol, TypeVar

from argon2 import PasswordHasher, extract_parameters, profiles
from psycopg import Cursor

from shared.domain.accounts.throttles import SignInThrottle
from shared.platform.database.pool import Database

_PARAMETERS = profiles.RFC_9106_LOW_MEMORY
_hasher = PasswordHasher.from_parameters(_PARAMETERS)
# Each hash takes 64 MiB while it is computed. A long queue is refused, because each waiting request holds a thread.
_hashing_slots = BoundedSemaphore(4)
_queue_slots = BoundedSemaphore(8)


class TooManyPasswordChecksError(Exception):
    """Too many passwords are being hashed at this moment; the same call may work in a second."""


def hash_password(text: str, like: str | None = None) -> str:
    """Hash a password, with the salt of the hash `like` if given: hashes of one salt are verified together.

    Raises TooManyPasswordChecksError.
    """
    with _hashing_slot():
        return _hasher.hash(_bytes(text), salt=_salt(like) if like else urandom(_PARAMETERS.salt_len))


def matching_hashes(hashes: Sequence[str], text: str) -> list[str]:
    """Return the hashes of this password.

    With one salt it takes as long for none and for several as for one, so the time does not tell how many there are.
    Raises TooManyPasswordChecksError.
    """
    kinds = {hashed.rpartition("$")[0]: hashed for hashed in hashes}
    tried = [_rehash(hashed, text) for hashed in kinds.values()]
    if not tried:
        hash_password(text)
    return [hashed for hashed in hashes if any(hmac.compare_digest(hashed, one) for one in tried)]


def needs_rehash(hashed: str) -> bool:
    """Return whether the hash was made with weaker parameters than those in use now."""
    return _hasher.check_needs_rehash(hashed)


def _rehash(hashed: str, text: str) -> str:
    with _hashing_slot():
        hasher = PasswordHasher.from_parameters(extract_parameters(hashed))
        return hasher.hash(_bytes(text), salt=_salt(hashed))


@contextmanager
def _hashing_slot() -> Iterator[None]:
    if not _queue_slots.acquire(blocking=False):
        raise TooManyPasswordChecksError
    try:
        with _hashing_slots:
            yield
    finally:
        _queue_slots.release()


def _salt(hashed: str) -> bytes:
    text = hashed.split("$")[-2]
    return b64decode(text + "=" * (-len(text) % 4))


def _bytes(text: str) -> bytes:
    """Encode whatever a browser sent, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


class HasPassword(Protocol):
    @property
    def password_hash(self) -> str | None: ...


P = TypeVar("P", bound=HasPassword)


@dataclass(frozen=True, slots=True)
class PasswordVerification(Generic[P]):
    candidates: Sequence[P]
    verified: Sequence[P]
    """The candidates whose password it is."""


@dataclass(frozen=True, slots=True)
class PasswordVerifier:
    database: Database
    throttle: SignInThrottle

    def count_attempt(self, account: str, address: str) -> None:
        """Count an attempt. Raises SignInThrottledError if there were too many."""
        with self.database.transaction() as connection:
            self.throttle.count_attempt(connection, account, address)

    def verify(
        self, account: str, address: str, find: Callable[[Cursor[Any]], Sequence[P]], password: str
    ) -> PasswordVerification[P]:
        """Count an attempt, find the candidates and check the password against their hashes.

        Takes as long without a candidate as with one. Raises SignInThrottledError and TooManyPasswordChecksError.
        """
        self.count_attempt(account, address)
        with self.database.cursor() as cursor:
            candidates = find(cursor)
        right = matching_hashes([person.password_hash or "" for person in candidates], password)
        return PasswordVerification(
            candidates, [person for person in candidates if person.password_hash in right]
        )

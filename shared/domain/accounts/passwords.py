"""Passwords: stored as argon2id hashes, which take time and memory to compute, and verified with throttling."""

import hashlib
import hmac
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import urandom
from threading import BoundedSemaphore
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from argon2 import PasswordHasher, extract_parameters, profiles

from shared.domain.accounts.throttles import CountedAttempt, GuessedAccount, SignInThrottle
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
    def id(self) -> UUID: ...

    @property
    def password_hash(self) -> str | None: ...


P = TypeVar("P", bound=HasPassword)


@dataclass(frozen=True, slots=True)
class KnownBrowser:
    """A browser, and the accounts that somebody has signed in to with it."""

    id: str
    accounts: frozenset[str]
    """Their fingerprints."""

    def knows(self, person: HasPassword) -> bool:
        return account_fingerprint(person) in self.accounts


def account_fingerprint(person: HasPassword) -> str:
    """Return a fingerprint of the account and its password: with a new password it is another one."""
    return hashlib.sha256(f"{person.id} {person.password_hash}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class PasswordVerification(Generic[P]):
    attempt: CountedAttempt
    candidates: Sequence[P]
    verified: Sequence[P]
    """The candidates whose password it is."""

    @property
    def throttled(self) -> Sequence[P]:
        """The candidates whose password was not looked at, because too many guesses have failed."""
        return [person for person in self.candidates if str(person.id) not in self.attempt.allowed]


@dataclass(frozen=True, slots=True)
class PasswordVerifier:
    database: Database
    throttle: SignInThrottle

    def count_attempt(self, accounts: Sequence[GuessedAccount], address: str) -> CountedAttempt:
        """Count an attempt. Raises SignInThrottledError if there were too many."""
        with self.database.transaction() as connection:
            return self.throttle.count_attempt(connection, accounts, address)

    def verify(
        self, email: str, candidates: Sequence[P], address: str, browser: KnownBrowser, password: str
    ) -> PasswordVerification[P]:
        """Count an attempt for the candidates, and check the password against the hashes of those not throttled.

        Without a candidate, the attempt is counted for the email address, and it takes as long as with one. Raises
        SignInThrottledError and TooManyPasswordChecksError.
        """
        accounts = [
            GuessedAccount(str(person.id), browser.id if browser.knows(person) else None)
            for person in candidates
        ]
        attempt = self.count_attempt(accounts or [GuessedAccount(email)], address)
        tried = [person for person in candidates if str(person.id) in attempt.allowed]
        right = matching_hashes([person.password_hash or "" for person in tried], password)
        verified = [person for person in tried if person.password_hash in right]
        return PasswordVerification(attempt, candidates, verified)

"""Passwords: stored as argon2id hashes, which take time and memory to compute, and verified with throttling."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from argon2 import PasswordHasher, profiles
from argon2.exceptions import VerifyMismatchError

from shared.domain.accounts.throttles import CountedAttempt, GuessedAccount, SignInThrottle
from shared.platform.database.pool import Database

_PARAMETERS = profiles.RFC_9106_LOW_MEMORY
_hasher = PasswordHasher.from_parameters(_PARAMETERS)
# Each hash takes 64 MiB while it is computed. A long queue is refused, because each waiting request holds a thread.
_hashing_slots = BoundedSemaphore(4)
_queue_slots = BoundedSemaphore(8)


class TooManyPasswordChecksError(Exception):
    """Too many passwords are being hashed at this moment; the same call may work in a second."""


def hash_password(text: str) -> str:
    """Hash a password. Raises TooManyPasswordChecksError."""
    with _hashing_slot():
        return _hasher.hash(_bytes(text))


def is_password(hashed: str | None, text: str) -> bool:
    """Return whether the hash is of this password. Without a hash it is False, and takes as long as with one.

    Raises TooManyPasswordChecksError.
    """
    if hashed is None:
        hash_password(text)
        return False
    with _hashing_slot(), suppress(VerifyMismatchError):
        return _hasher.verify(hashed, _bytes(text))
    return False


def needs_rehash(hashed: str) -> bool:
    """Return whether the hash was made with weaker parameters than those in use now."""
    return _hasher.check_needs_rehash(hashed)


@contextmanager
def _hashing_slot() -> Iterator[None]:
    if not _queue_slots.acquire(blocking=False):
        raise TooManyPasswordChecksError
    try:
        with _hashing_slots:
            yield
    finally:
        _queue_slots.release()


def _bytes(text: str) -> bytes:
    """Encode whatever a browser sent, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


class HasPassword(Protocol):
    @property
    def id(self) -> UUID: ...

    @property
    def password_hash(self) -> str: ...


P = TypeVar("P", bound=HasPassword)


@dataclass(frozen=True, slots=True)
class KnownBrowser:
    """A browser, and the accounts that somebody has signed in to with it."""

    id: str
    accounts: frozenset[str]
    """Their fingerprints."""

    def knows(self, account: HasPassword) -> bool:
        return account_fingerprint(account) in self.accounts


def account_fingerprint(account: HasPassword) -> str:
    """Return a fingerprint of the account and its password: with a new password it is another one."""
    return hashlib.sha256(f"{account.id} {account.password_hash}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class PasswordVerification(Generic[P]):
    attempt: CountedAttempt
    verified: P | None
    """The account, if it was its password."""


@dataclass(frozen=True, slots=True)
class PasswordVerifier:
    database: Database
    throttle: SignInThrottle

    def count_attempt(self, account: GuessedAccount, address: str) -> CountedAttempt:
        """Count an attempt. Raises SignInThrottledError if there were too many."""
        with self.database.transaction() as connection:
            return self.throttle.count_attempt(connection, account, address)

    def verify(
        self, email: str, account: P | None, address: str, browser: KnownBrowser, password: str
    ) -> PasswordVerification[P]:
        """Count an attempt for the account, and check the password.

        Without an account, the attempt is counted for the email address, and it takes as long as with one. Raises
        SignInThrottledError and TooManyPasswordChecksError.
        """
        guessed = GuessedAccount(email)
        if account is not None:
            guessed = GuessedAccount(str(account.id), browser.id if browser.knows(account) else None)
        attempt = self.count_attempt(guessed, address)
        is_right = is_password(account.password_hash if account else None, password)
        return PasswordVerification(attempt, account if is_right else None)

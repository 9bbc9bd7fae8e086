"""Passwords: kept as argon2id hashes, which take time and memory to try."""

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

from shared.domain.accounts.throttles import Throttles
from shared.platform.database.pool import Database

SHORTEST = 12
LONGEST = 200
_FEWEST_DIFFERENT = 5
_LONG_ENOUGH_TO_GUESS = 5

_PARAMETERS = profiles.RFC_9106_LOW_MEMORY
_hasher = PasswordHasher.from_parameters(_PARAMETERS)
# Each takes 64 MiB while it is made or tried. Who would have to wait long is sent away, for who waits holds a thread.
_at_once = BoundedSemaphore(4)
_in_line = BoundedSemaphore(8)


class PasswordNotAllowedError(Exception):
    """Too short, too long, or too easy to guess."""


class TooManyPasswordsError(Exception):
    """So many are being tried at this moment that this one was not; the same call may work in a second."""


def check_password(text: str, email: str) -> str:
    """The password, if one may choose it: its length is what counts."""
    name = email.partition("@")[0]
    own = name if len(name) >= _LONG_ENOUGH_TO_GUESS else email
    is_guessable = len(set(text)) < _FEWEST_DIFFERENT or own in text.lower()
    if not SHORTEST <= len(text) <= LONGEST or is_guessable:
        raise PasswordNotAllowedError
    return text


def hash_password(text: str, like: str | None = None) -> str:
    """With the salt of `like`, where there is one: several hashes of one salt are tried at once."""
    with _turn():
        return _hasher.hash(_bytes(text), salt=_salt(like) if like else urandom(_PARAMETERS.salt_len))


def matching(hashes: Sequence[str], text: str) -> list[str]:
    """Those whose password this is. It takes as long for none and for several as for one, where they have one salt, so
    that the time does not tell how many there are."""
    kinds = {hashed.rpartition("$")[0]: hashed for hashed in hashes}
    tried = [_again(hashed, text) for hashed in kinds.values()]
    if not tried:
        hash_password(text)
    return [hashed for hashed in hashes if any(hmac.compare_digest(hashed, one) for one in tried)]


def is_outdated(hashed: str) -> bool:
    """It was made with less effort than we ask for now."""
    return _hasher.check_needs_rehash(hashed)


def _again(hashed: str, text: str) -> str:
    with _turn():
        hasher = PasswordHasher.from_parameters(extract_parameters(hashed))
        return hasher.hash(_bytes(text), salt=_salt(hashed))


@contextmanager
def _turn() -> Iterator[None]:
    if not _in_line.acquire(blocking=False):
        raise TooManyPasswordsError
    try:
        with _at_once:
            yield
    finally:
        _in_line.release()


def _salt(hashed: str) -> bytes:
    text = hashed.split("$")[-2]
    return b64decode(text + "=" * (-len(text) % 4))


def _bytes(text: str) -> bytes:
    """Whatever a browser sent, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


class HasPassword(Protocol):
    @property
    def password_hash(self) -> str | None: ...


P = TypeVar("P", bound=HasPassword)


@dataclass(frozen=True, slots=True)
class Tried(Generic[P]):
    known: Sequence[P]
    proven: Sequence[P]
    """Those of them whose password it is."""


@dataclass(frozen=True, slots=True)
class Prover:
    database: Database
    throttles: Throttles

    def count(self, account: str, address: str) -> None:
        """Raises SlowDownError: nothing is looked at."""
        with self.database.transaction() as connection:
            self.throttles.count(connection, account, address)

    def prove(
        self, account: str, address: str, find: Callable[[Cursor[Any]], Sequence[P]], password: str
    ) -> Tried[P]:
        """Takes as long for nobody as for somebody. Raises SlowDownError and TooManyPasswordsError."""
        self.count(account, address)
        with self.database.cursor() as cursor:
            known = find(cursor)
        right = matching([person.password_hash or "" for person in known], password)
        return Tried(known, [person for person in known if person.password_hash in right])

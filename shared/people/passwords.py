"""Passwords: kept as argon2id hashes, which take time and memory to try."""

from threading import BoundedSemaphore

from argon2 import PasswordHasher, profiles
from argon2.exceptions import InvalidHashError, VerificationError

SHORTEST = 12
LONGEST = 200
_FEWEST_DIFFERENT = 5

_hasher = PasswordHasher.from_parameters(profiles.RFC_9106_LOW_MEMORY)
# Each takes 64 MiB while it is made or tried.
_at_once = BoundedSemaphore(4)
_NOBODYS = _hasher.hash("nobody has this password")


class PasswordNotAllowedError(Exception):
    """Too short, too long, or too easy to guess."""


def check_password(text: str, email: str) -> str:
    """The password, if one may choose it: its length is what counts."""
    is_guessable = len(set(text)) < _FEWEST_DIFFERENT or email.partition("@")[0] in text.lower()
    if not SHORTEST <= len(text) <= LONGEST or is_guessable:
        raise PasswordNotAllowedError
    return text


def hash_password(text: str) -> str:
    with _at_once:
        return _hasher.hash(_bytes(text))


def matches(hashed: str | None, text: str) -> bool:
    """For nobody's hash it takes as long, so that the time does not tell whether there is one."""
    with _at_once:
        try:
            _hasher.verify(hashed or _NOBODYS, _bytes(text))
        except (VerificationError, InvalidHashError):
            return False
    return hashed is not None


def is_outdated(hashed: str) -> bool:
    """It was made with less effort than we ask for now."""
    return _hasher.check_needs_rehash(hashed)


def _bytes(text: str) -> bytes:
    """Whatever a browser sent, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")

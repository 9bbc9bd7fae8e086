"""Recognises secrets that are published or easy to guess. Pure."""

import base64
import hashlib
import re
from itertools import pairwise
from typing import Final

_SHORTEST_PASSWORD: Final = 8
_FEWEST_DISTINCT_CHARACTERS: Final = 5
# Among 32 random bytes hardly any two are equal.
_FEWEST_DISTINCT_BYTES: Final = 20

_WORDS: Final = (
    "abcdef admin administrator change changeit database db default demo dev developer development docker example for "
    "grafana here hush in insecure it kafka key letmein local mail me merchant mizan my not only owner pass passw0rd "
    "passwd password payments pg placeholder please postgres postgresql prod production pw qwerty qwertyuiop random "
    "replace root sandbox secret shop smtp super test testing this to user welcome your "
    "12345 123456 1234567 12345678 123456789 1234567890 0987654321"
)
# Only such words with a few digits between them: mizan-dev, Password123, change_me_in_production.
_ONLY_WORDS: Final = re.compile(rf"(?:{'|'.join(_WORDS.split())}|[0-9]{{1,4}}(?![0-9]))*")

_KNOWN_KEYS: Final = frozenset(
    {
        "cbeb362f1fa69a6691db592f4529cf6bea1ce089eb132a3350c9081279ff8f34",  # the example in Fernet's specification
    }
)
"""SHA-256 of the keys' bytes. Every key that is written anywhere in this repository belongs here."""


def is_known_password(password: str, *names: str) -> bool:
    """Whether the password is easy to guess. `names` are related names: the user, the database."""
    plain = re.sub(r"[\W_]", "", password.lower())
    return (
        len(password) < _SHORTEST_PASSWORD
        or len(set(password)) < _FEWEST_DISTINCT_CHARACTERS
        or (bool(plain) and _ONLY_WORDS.fullmatch(plain) is not None)
        or password.lower() in {name.lower() for name in names}
    )


def is_known_key(key: str) -> bool:
    """Whether a Fernet key is published or not random."""
    # Decoded as Fernet does: other spellings of the same bytes are the same key.
    secret = base64.urlsafe_b64decode(key)
    return (
        hashlib.sha256(secret).hexdigest() in _KNOWN_KEYS
        or _is_not_random(secret)
        or _is_hash_of_word(secret)
    )


def _is_not_random(secret: bytes) -> bool:
    """Whether it repeats a few bytes, counts up or down, or was typed by a person."""
    steps = {(after - before) % 256 for before, after in pairwise(secret)}
    return (
        len(set(secret)) < _FEWEST_DISTINCT_BYTES
        or len(steps) == 1
        or (secret.isascii() and secret.decode().isprintable())
    )


def _is_hash_of_word(secret: bytes) -> bool:
    return any(hashlib.sha256(word.encode()).digest() == secret for word in ("", *_WORDS.split()))

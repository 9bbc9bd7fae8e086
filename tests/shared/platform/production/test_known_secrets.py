"""Secrets that production refuses because they are published or easy to guess."""

import base64
import hashlib
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from shared.platform.production.known_secrets import is_known_key, is_known_password

_KEY_LIKE = re.compile(r"(?<![A-Za-z0-9_+/-])[A-Za-z0-9_+/-]{43}=(?![A-Za-z0-9_+/=-])")
_NOT_OURS = {
    ".git",
    ".run",
    ".hypothesis",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    "node_modules",
}


def _key(secret: bytes) -> str:
    return base64.urlsafe_b64encode(secret).decode()


@pytest.mark.parametrize(
    "key",
    [
        _key(bytes(32)),
        _key(b"\xff" * 32),
        _key(bytes(range(32))),
        _key(bytes(range(200, 168, -1))),
        _key(bytes(range(16)) * 2),
        _key(b"a key that somebody has typed in"),
        _key(hashlib.sha256(b"mizan").digest()),
        "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=",  # from the specification of Fernet
        "cw/0x689RpI+jtRR7oE8h/eQsKImvJapLeSbXpwF4e4=",  # the same key in standard base64
    ],
)
def test_known_keys_are_refused(key: str) -> None:
    Fernet(key)
    assert is_known_key(key)


def test_a_random_key_is_accepted() -> None:
    assert not any(is_known_key(Fernet.generate_key().decode()) for _ in range(2000))


def test_every_key_in_this_repository_is_known(repository_root: Path) -> None:
    """A key copied from a document, a test or an example must not be used in production."""
    found: dict[str, Path] = {}
    for folder, folders, files in os.walk(repository_root):
        folders[:] = [name for name in folders if name not in _NOT_OURS and not name.startswith(".venv")]
        for path in (Path(folder, name) for name in files):
            with suppress(FileNotFoundError):  # another test may have just removed it
                found |= dict.fromkeys(_KEY_LIKE.findall(path.read_text(errors="ignore")), path)
    assert found  # at least those of this file
    unknown = [str(path) for key, path in found.items() if not is_known_key(key)]
    assert unknown == [], "add their hashes to shared/platform/production/known_secrets.py"


@pytest.mark.parametrize(
    "password",
    [
        "mizan", "Postgres", "short-7", "aaaaaaaaaaaa", "abababababab", "12345678", "1234567890", "password",
        "Password123!", "change_me_in_production", "mizan-dev-password", "my-secret-pw", "demo2026", "placeholder",
    ],
)  # fmt: skip
def test_guessable_passwords_are_refused(password: str) -> None:
    assert is_known_password(password)


def test_related_names_are_refused_as_passwords() -> None:
    assert is_known_password("tripoli_coffee", "Tripoli_Coffee")
    assert not is_known_password("tripoli_coffee", "somebody")
    assert not is_known_password("!@#$%^&*()-+={}[]<>?")


def test_a_random_password_is_accepted() -> None:
    made = [make(12) for make in (secrets.token_urlsafe, secrets.token_hex) for _ in range(500)]
    made += ["correct horse battery staple", "83920174652093"]
    assert [password for password in made if is_known_password(password)] == []

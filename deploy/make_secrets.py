#!/usr/bin/env python3
"""Makes the secrets of an installation as files of a directory, each once; what is there already stays.

A secret that the environment gives (MIZAN_SECRET_KEYS, SANDBOX_SECRET, DATABASE_PASSWORD) is taken instead.
"""

import base64
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

# Accounts in containers are not ours, and each file may be mounted by itself: its directory keeps everybody else out.
MODE = 0o444


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    directory = Path(sys.argv[1])
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_volume(directory) and directory.stat().st_mode & 0o077:
        sys.exit(f"{directory} is open to others on this machine. Close it first: chmod 700 {directory}")
    _keep(directory / "secret_keys", "MIZAN_SECRET_KEYS", _new_key)
    _keep(directory / "sandbox_secret", "SANDBOX_SECRET", _new_password)
    _keep(directory / "grafana_password", "GRAFANA_PASSWORD", _new_password)
    password = _keep(directory / "database_password", "DATABASE_PASSWORD", _new_password)
    address = directory / "database_url"
    # In production it may have been changed, to lead to a server elsewhere.
    if not address.exists() or _given("DATABASE_PASSWORD"):
        _write(address, f"postgresql://mizan:{quote(password, safe='')}@postgres:5432/mizan")


def _is_volume(directory: Path) -> bool:
    """Of containers, which no account of the machine reaches; there accounts of several images read it."""
    return directory.is_mount()


def _keep(path: Path, name: str, new: Callable[[], str]) -> str:
    known = path.read_text().strip() if path.exists() else ""
    secret = _given(name) or known or new()
    if secret != known:
        _write(path, secret)
    return secret


def _given(name: str) -> str:
    return os.environ.get(name, "").strip()  # noqa: TID251


def _write(path: Path, text: str) -> None:
    """Whole or not at all: who is cut off in the middle must not leave half a key."""
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.chmod(MODE)
    unfinished.replace(path)


def _new_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _new_password() -> str:
    return secrets.token_urlsafe(32)


if __name__ == "__main__":
    main()

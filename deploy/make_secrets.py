#!/usr/bin/env python3
"""Creates the secrets of an installation as files in a directory. Existing files stay.

A secret in the environment (MIZAN_SECRET_KEYS, SANDBOX_SECRET, DATABASE_PASSWORD) is used instead of a new one.
"""

import base64
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

# Containers use other accounts, and each file may be mounted alone. The directory keeps everybody else out.
MODE = 0o444


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    directory = Path(sys.argv[1])
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_volume(directory) and directory.stat().st_mode & 0o077:
        sys.exit(
            f"{directory} is readable by others on this machine. Make it private first: chmod 700 {directory}"
        )
    _ensure(directory / "secret_keys", "MIZAN_SECRET_KEYS", _new_key)
    _ensure(directory / "sandbox_secret", "SANDBOX_SECRET", _new_password)
    _ensure(directory / "grafana_password", "GRAFANA_PASSWORD", _new_password)
    password = _ensure(directory / "database_password", "DATABASE_PASSWORD", _new_password)
    address = directory / "database_url"
    # In production it may have been changed to another server.
    if not address.exists() or _given("DATABASE_PASSWORD"):
        _write(address, f"postgresql://mizan:{quote(password, safe='')}@postgres:5432/mizan")


def _is_volume(directory: Path) -> bool:
    """Tell whether it is a volume of containers, which accounts of this machine cannot read."""
    return directory.is_mount()


def _ensure(path: Path, name: str, new: Callable[[], str]) -> str:
    known = path.read_text().strip() if path.exists() else ""
    secret = _given(name) or known or new()
    if secret != known:
        _write(path, secret)
    return secret


def _given(name: str) -> str:
    return os.environ.get(name, "").strip()  # noqa: TID251


def _write(path: Path, text: str) -> None:
    """Write the file atomically: a killed process must not leave half a key."""
    partial = path.with_name(f".{path.name}.new")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.chmod(MODE)
    partial.replace(path)


def _new_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _new_password() -> str:
    return secrets.token_urlsafe(32)


if __name__ == "__main__":
    main()

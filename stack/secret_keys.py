"""The key that this stack's stored secrets are encrypted with: made once, kept beside the data."""

import base64
import secrets
from pathlib import Path

from stack.private_file import write_private


def ensure_secret_keys(directory: Path) -> Path:
    """The file with the key. Without it, what was encrypted cannot be read again."""
    path = directory / "secret_keys"
    if not path.exists():
        write_private(path, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() + "\n")
    return path

"""The key that this stack's stored secrets are encrypted with: made once, kept beside the data."""

import base64
import secrets
from pathlib import Path

from shared.platform.private_files import write_private
from stack.errors import StackError


def ensure_secret_keys(directory: Path) -> Path:
    """The file with the key. Without it, what was encrypted cannot be read again."""
    path = directory / "secret_keys"
    if not path.exists():
        write_private(path, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() + "\n")
    if not path.read_text().strip():
        raise StackError(
            f"{path} is empty; what this stack encrypted cannot be read without it.",
            "Put the key back, or remove the file if nothing that was encrypted is needed any more.",
        )
    return path

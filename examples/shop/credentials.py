"""The secrets that Mizan's dashboard issues (§5): kept on the server, never in the code, never sent to a browser."""

import json
from dataclasses import dataclass, field
from pathlib import Path


class NoCredentialsError(Exception):
    """The file is not there, or does not hold them."""


@dataclass(frozen=True, slots=True)
class Credentials:
    api_key: str = field(repr=False)
    access_token: str = field(repr=False)
    webhook_secret: str = field(repr=False)


def read_credentials(path: Path) -> Credentials:
    """Read at every use: who replaces them need not restart the shop."""
    try:
        known = json.loads(path.read_text())
        values = [str(known[name]) for name in ("api_key", "access_token", "webhook_secret")]
    except (OSError, ValueError, KeyError, TypeError):
        raise NoCredentialsError(f"no credentials can be read from {path}") from None
    return Credentials(*values)

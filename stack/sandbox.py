"""What the sandbox of a development stack needs: an address, a secret to sign with, a file for its ledger."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from shared.platform.private_files import write_private

# The sandbox's phone numbers are shared by everybody who tries something out.
_CODES_PER_PHONE = 1000


def sandbox_environment(directory: Path, url: str) -> Mapping[str, str]:
    return {
        "SANDBOX_URL": url,
        "SANDBOX_SECRET_FILE": str(_secret(directory)),
        "SANDBOX_LEDGER": str(directory / "sandbox.sqlite"),
        "CHECKOUT_CODES_PER_PHONE": str(_CODES_PER_PHONE),
    }


def _secret(directory: Path) -> Path:
    path = directory / "sandbox_secret"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return path

"""The demo application: made once, so that a newcomer can buy a coffee in its shop and copy a first call to the API."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from stack.errors import StackError
from stack.programs import DEMO_FILE, PROJECT

Demo = Mapping[str, str]
_TOLD = (
    "application_id",
    "api_key",
    "access_token",
    "webhook_secret",
    "owner_email",
    "owner_password",
    "operator_email",
    "operator_password",
)
"""What stack.json says of it."""


def ensure_demo(directory: Path, environment: Mapping[str, str]) -> Demo:
    """Its credentials and its people's passwords, which only the file of `mizan demo` knows."""
    path = directory / DEMO_FILE
    webhook_url = f"{environment['SHOP_PUBLIC_URL']}/webhooks/mizan"
    command = (sys.executable, "-m", "mizan", "demo", "--file", str(path), "--webhook-url", webhook_url)
    made = subprocess.run(
        command, env=dict(environment), cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise StackError(
            f"The demo application could not be made. It said:\n{made.stderr.strip()}",
            "Start again once the cause is removed.",
        )
    known: dict[str, str] = json.loads(path.read_text())
    return {name: known[name] for name in _TOLD}


def no_demo(_directory: Path, _environment: Mapping[str, str]) -> Demo:
    return {}

"""The demo application: made once, so that a newcomer can call the API with the first line they copy."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psycopg

from stack.errors import StackError
from stack.private_file import write_private
from stack.programs import PROJECT

Demo = Mapping[str, str]
_CREATE = (
    sys.executable,
    "-m",
    "mizan",
    "app",
    "create",
    "--name",
    "Demo shop",
    "--merchant",
    "Demo",
    "--json",
)


def ensure_demo(directory: Path, environment: Mapping[str, str]) -> Demo:
    """Its credentials, which the database does not know: they are kept beside it."""
    path = directory / "demo.json"
    known = _read(path)
    if known and _exists(environment["DATABASE_URL"], known["application_id"]):
        return known
    made = subprocess.run(
        _CREATE, env=dict(environment), cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise StackError(
            f"The demo application could not be made. It said:\n{made.stderr.strip()}",
            "Start again once the cause is removed.",
        )
    demo: dict[str, str] = json.loads(made.stdout)
    write_private(path, json.dumps(demo, indent=2) + "\n")
    return demo


def _read(path: Path) -> Demo | None:
    try:
        known: dict[str, str] = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return known


def no_demo(_directory: Path, _environment: Mapping[str, str]) -> Demo:
    return {}


def _exists(database_url: str, application_id: str) -> bool:
    with psycopg.connect(database_url, connect_timeout=10) as connection:
        found = connection.execute("select from applications where id = %s", (application_id,))
        return found.rowcount > 0

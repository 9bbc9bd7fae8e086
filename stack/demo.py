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
_MERCHANT = "Demo"
_OWNER = "owner@demo.example"
_FIND_OWNER = """
select a.merchant_id, exists (select from members as m where m.merchant_id = a.merchant_id and m.email = %s
                              and m.removed_at is null)
from applications as a where a.id = %s"""
_OPERATOR = "operator@demo.example"
_FIND_OPERATOR = "select from operators where email = %s and removed_at is null"
_CREATE = ("app", "create", "--name", "Demo shop", "--merchant", _MERCHANT, "--json")


def ensure_demo(directory: Path, environment: Mapping[str, str]) -> Demo:
    """Its credentials and its owner's, which the database does not know: they are kept beside it."""
    path = directory / "demo.json"
    known = dict(_read(path) or {})
    demo = known if known and _exists(environment["DATABASE_URL"], known["application_id"]) else {}
    if not demo:
        demo |= _mizan(environment, *_CREATE)
    if "owner_email" not in demo:
        demo |= _owner(environment, demo["application_id"])
    if "operator_email" not in demo:
        demo |= _operator(environment)
    if demo != known:
        write_private(path, json.dumps(demo, indent=2) + "\n")
    return demo


def _owner(environment: Mapping[str, str], application_id: str) -> Demo:
    """Where demo.json was lost, the owner is there already, and gets a new password."""
    with psycopg.connect(environment["DATABASE_URL"], connect_timeout=10) as connection:
        row = connection.execute(_FIND_OWNER, (_OWNER, application_id)).fetchone()
    assert row is not None
    merchant, is_known = row
    member = ("--email", _OWNER, "--merchant", str(merchant), "--json")
    command = ("reset-password",) if is_known else ("create", "--role", "owner")
    made = _mizan(environment, "user", *command, *member)
    return {"owner_email": made["email"], "owner_password": made["password"]}


def _operator(environment: Mapping[str, str]) -> Demo:
    with psycopg.connect(environment["DATABASE_URL"], connect_timeout=10) as connection:
        is_known = connection.execute(_FIND_OPERATOR, (_OPERATOR,)).rowcount > 0
    command = "reset-password" if is_known else "create"
    made = _mizan(environment, "operator", command, "--email", _OPERATOR, "--json")
    return {"operator_email": made["email"], "operator_password": made["password"]}


def _mizan(environment: Mapping[str, str], *arguments: str) -> dict[str, str]:
    command = (sys.executable, "-m", "mizan", *arguments)
    made = subprocess.run(
        command, env=dict(environment), cwd=PROJECT, capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise StackError(
            f"The demo application could not be made. It said:\n{made.stderr.strip()}",
            "Start again once the cause is removed.",
        )
    answer: dict[str, str] = json.loads(made.stdout)
    return answer


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

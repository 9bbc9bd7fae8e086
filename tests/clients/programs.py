"""Runs the client of another language: its runner program gets operations as JSON and prints results as JSON."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.shared_cases import Operation, Result, Runner
from tests.merchants.languages import LANGUAGES, PATH


def find_program(language: str) -> str:
    """Return the path of the language's program. Skips the test if it is missing; in CI, fails."""
    (wanted,) = (known for known in LANGUAGES if known.name == language)
    wanted.require()
    program = shutil.which(wanted.presence[0], path=PATH)
    assert program is not None
    return program


def make_runner(program: str, script: Path) -> Runner:
    def run(operations: Sequence[Operation]) -> list[Result]:
        done = subprocess.run(
            [program, str(script)],
            input=json.dumps(operations).encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
        results: list[dict[str, Any]] = json.loads(done.stdout)
        return [_without_absent(result) for result in results]

    return run


def _without_absent(result: dict[str, Any]) -> Result:
    """Leave out the values that this kind of error does not have."""
    is_response = result.get("status") is not None
    optional = () if is_response else ("status", "errors", "request_id", "retry_after")
    return {name: value for name, value in result.items() if name not in optional or value is not None}

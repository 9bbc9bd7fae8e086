"""Runs programs of this machine, with its environment."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = dict(os.environ)  # noqa: TID251  docker, go and pip need our environment
"""The environment of all programs. The address of the daemon and the images are added to it."""


class ProgramFailedError(Exception):
    """A program failed. The message contains the end of its output."""


def run(
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    within: float = 600,
    cwd: Path | None = None,
) -> str:
    """Run `command` and return its standard output. Raises ProgramFailedError."""
    words = [str(word) for word in command]
    shown = " ".join(words)[:160]
    try:
        done = subprocess.run(
            words,
            env={**ENVIRONMENT, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=within,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailedError(f"`{shown}` did not finish within {within:.0f} s") from None
    except FileNotFoundError:
        raise ProgramFailedError(f"{words[0]} is not installed") from None
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise ProgramFailedError(f"`{shown}` failed with {done.returncode}:\n{tail}")
    return done.stdout

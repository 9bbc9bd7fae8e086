"""What the proof takes from the machine it runs on: its environment and its programs."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

SURROUNDINGS = dict(os.environ)  # noqa: TID251  docker, go and pip need what whoever started the proof has
"""What programs are started with. The proof adds where the daemon is and which images stand in."""


class ProgramFailedError(Exception):
    """A program that the proof cannot do without did not end well; says what it printed last."""


def run(
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    within: float = 600,
    cwd: Path | None = None,
) -> str:
    """What `command` printed to stdout."""
    words = [str(word) for word in command]
    shown = " ".join(words)[:160]
    try:
        done = subprocess.run(
            words,
            env={**SURROUNDINGS, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=within,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailedError(f"`{shown}` was not done within {within:.0f} s") from None
    except FileNotFoundError:
        raise ProgramFailedError(f"{words[0]} is not installed") from None
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise ProgramFailedError(f"`{shown}` ended with {done.returncode}:\n{tail}")
    return done.stdout

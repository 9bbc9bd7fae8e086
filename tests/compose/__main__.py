"""`make test-compose`: a daemon, a compose, images, and the tests that need all of them; tells how long each took."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

from stack.options import cache_directory
from tests.compose.composes import Compose, find_composes
from tests.compose.daemon import NoDockerError, some_daemon
from tests.compose.images import build_ours, choose
from tests.compose.leftovers import remove_leftovers
from tests.compose.project import ROOT
from tests.compose.stand_ins import STAND_INS
from tests.compose.surroundings import SURROUNDINGS, ProgramFailedError, run

TESTS_SECONDS = 1500
T = TypeVar("T")


def main() -> int:
    cache = cache_directory() / "compose"
    cache.mkdir(parents=True, exist_ok=True)
    # So that what was started is stopped, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        with some_daemon(cache) as where:
            SURROUNDINGS.update(where)
            version = run("docker", "version", "--format", "{{.Server.Version}}").strip()
            _say(f"Docker {version}, " + ("started for this" if where else "which was there"))
            return _prove(cache, sys.argv[1:])
    except NoDockerError as error:
        _say(f"SKIPPED, nothing was proven: {error}.")
        return 0
    except ProgramFailedError as error:
        _say(f"FAILED: {error}")
        return 1


def _prove(cache: Path, pytest_arguments: list[str]) -> int:
    composes = _timed("Docker Compose", lambda: find_composes(cache), _versions)
    if not composes:
        _say("SKIPPED, nothing was proven: there is neither Docker Compose, nor Go to build it with.")
        return 0
    for stand_in in STAND_INS:
        image = _timed(stand_in.variable, partial(choose, stand_in, cache), str)
        SURROUNDINGS[stand_in.variable] = image
    _timed("The image of Mizan", build_ours, lambda _: "built")
    try:
        return _test(composes, pytest_arguments)
    finally:
        for name in remove_leftovers():
            _say(f"removed {name}, which was left behind")


def _test(composes: list[Compose], arguments: list[str]) -> int:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([asdict(compose) for compose in composes], file)
        file.flush()
        # Each test may wait for a whole stack to come up; the time of all of them is bounded here.
        command = [sys.executable, "-m", "pytest", "-v", "--timeout=600", f"--composes={file.name}"]
        tests = arguments or ["tests/compose"]
        try:
            return subprocess.run(
                [*command, *tests], env=SURROUNDINGS, cwd=ROOT, timeout=TESTS_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            _say(f"FAILED: the tests were not done within {TESTS_SECONDS} s")
            return 1


def _versions(composes: list[Compose]) -> str:
    return ", ".join(compose.version for compose in composes)


def _timed(name: str, step: Callable[[], T], told: Callable[[T], str]) -> T:
    started = monotonic()
    print(f"compose: {name} … ", end="", flush=True)
    result = step()
    print(f"{told(result)}  ({monotonic() - started:.1f} s)", flush=True)
    return result


def _say(text: str) -> None:
    print(f"compose: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

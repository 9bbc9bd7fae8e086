"""`make test-compose`: provides a Docker daemon, Docker Compose and images, and runs the tests that need them."""

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
from tests.compose.compose_versions import Compose, find_composes
from tests.compose.daemon import NoDockerError, ensure_daemon
from tests.compose.images import build_mizan_image, choose_image
from tests.compose.programs import ENVIRONMENT, ProgramFailedError, run
from tests.compose.project import ROOT, remove_orphans
from tests.compose.stand_ins import STAND_INS

TESTS_SECONDS = 1500
T = TypeVar("T")


def main() -> int:
    cache = cache_directory() / "compose"
    cache.mkdir(parents=True, exist_ok=True)
    # So that everything we started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        with ensure_daemon(cache) as where:
            ENVIRONMENT.update(where)
            version = run("docker", "version", "--format", "{{.Server.Version}}").strip()
            _print(f"Docker {version}, " + ("started for this run" if where else "already running"))
            return _prepare_and_test(cache, sys.argv[1:])
    except NoDockerError as error:
        _print(f"SKIPPED, nothing was tested: {error}.")
        return 0
    except ProgramFailedError as error:
        _print(f"FAILED: {error}")
        return 1


def _prepare_and_test(cache: Path, pytest_arguments: list[str]) -> int:
    composes = _timed("Docker Compose", lambda: find_composes(cache), _versions)
    if not composes:
        _print("SKIPPED, nothing was tested: there is neither Docker Compose nor Go to build it with.")
        return 0
    for stand_in in STAND_INS:
        image = _timed(stand_in.variable, partial(choose_image, stand_in, cache), str)
        ENVIRONMENT[stand_in.variable] = image
    _timed("The image of Mizan", build_mizan_image, lambda _: "built")
    try:
        return _test(composes, pytest_arguments)
    finally:
        for name in remove_orphans():
            _print(f"removed the orphan {name}")


def _test(composes: list[Compose], arguments: list[str]) -> int:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([asdict(compose) for compose in composes], file)
        file.flush()
        # Each test may wait until a whole stack is up. The time for all of them is limited here.
        command = [sys.executable, "-m", "pytest", "-v", "--timeout=600", f"--composes={file.name}"]
        tests = arguments or ["tests/compose"]
        try:
            return subprocess.run(
                [*command, *tests], env=ENVIRONMENT, cwd=ROOT, timeout=TESTS_SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            _print(f"FAILED: the tests did not finish within {TESTS_SECONDS} s")
            return 1


def _versions(composes: list[Compose]) -> str:
    return ", ".join(compose.version for compose in composes)


def _timed(name: str, step: Callable[[], T], describe: Callable[[T], str]) -> T:
    started = monotonic()
    print(f"compose: {name} … ", end="", flush=True)
    result = step()
    print(f"{describe(result)}  ({monotonic() - started:.1f} s)", flush=True)
    return result


def _print(text: str) -> None:
    print(f"compose: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

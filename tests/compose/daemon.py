"""A Docker daemon for the proof: the one that answers, or one of its own for as long as the proof takes."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.compose.surroundings import SURROUNDINGS, ProgramFailedError, run
from tests.waiting import eventually

START_SECONDS = 60
BRIDGE = "mizan-proof0"
# Set aside for documentation, so nobody's network has it.
BRIDGE_ADDRESS = "192.0.2.1/24"


class NoDockerError(Exception):
    """There is no daemon, and none can be started; says why."""


def answers(env: Mapping[str, str]) -> bool:
    try:
        run("docker", "info", "--format", "{{.ServerVersion}}", env=env, within=20)
    except ProgramFailedError:
        return False
    return True


@contextmanager
def some_daemon(cache: Path) -> Iterator[Mapping[str, str]]:
    """Yields what a program needs in its environment to reach it."""
    if shutil.which("docker") is None:
        raise NoDockerError("the program docker is not installed")
    if answers({}):
        yield {}
    elif shutil.which("dockerd") is None:
        raise NoDockerError("no Docker daemon answers, and dockerd is not installed")
    elif os.geteuid() != 0:
        raise NoDockerError("no Docker daemon answers, and only root could start one")
    else:
        with _own_bridge(), _own_daemon(cache / "docker") as host:
            yield {"DOCKER_HOST": host}


@contextmanager
def _own_bridge() -> Iterator[None]:
    """Not docker0, which another daemon may have, and which `--bridge none` would even take away from it."""
    if shutil.which("ip") is None:
        raise NoDockerError("no Docker daemon answers, and one cannot be started without the program ip")
    with suppress(ProgramFailedError):
        # Of a run that was cut off.
        run("ip", "link", "delete", BRIDGE)
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    try:
        run("ip", "address", "add", BRIDGE_ADDRESS, "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        yield
    finally:
        run("ip", "link", "delete", BRIDGE)


@contextmanager
def _own_daemon(data: Path) -> Iterator[str]:
    """Images stay in `data`, so that the next run finds them; everything else goes away with the daemon."""
    data.mkdir(parents=True, exist_ok=True)
    # Short, for sockets are made below it, and their paths may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="mizan-docker-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        host = f"unix://{directory}/docker.sock"
        command = [
            "dockerd", "--data-root", str(data), "--exec-root", str(directory / "exec"), "--host", host,
            "--pidfile", str(directory / "pid"),
            "--bridge", BRIDGE,
        ]  # fmt: skip
        log = directory / "log"
        with log.open("w") as output:
            daemon = subprocess.Popen(
                command,
                env=dict(SURROUNDINGS),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            eventually(
                lambda: daemon.poll() is not None or answers({"DOCKER_HOST": host}), within=START_SECONDS
            )
            if daemon.poll() is not None:
                raise NoDockerError(
                    "dockerd does not start:\n" + "\n".join(log.read_text().splitlines()[-8:])
                )
            yield host
        finally:
            daemon.terminate()
            try:
                daemon.wait(90)
            except subprocess.TimeoutExpired:
                daemon.kill()
            with suppress(ProgramFailedError):
                # It leaves this one mounted, and what is mounted cannot be removed.
                run("umount", directory / "exec" / "netns" / "default")

"""A Docker daemon for the tests: the running one, or a new one for the duration of the tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.compose.programs import ENVIRONMENT, ProgramFailedError, run
from tests.waiting import eventually

START_SECONDS = 60
BRIDGE = "mizan-proof0"
# Reserved for documentation, so no network uses it.
BRIDGE_ADDRESS = "192.0.2.1/24"


class NoDockerError(Exception):
    """There is no daemon and none can be started, for the reason in the message."""


def is_answering(env: Mapping[str, str]) -> bool:
    try:
        run("docker", "info", "--format", "{{.ServerVersion}}", env=env, within=20)
    except ProgramFailedError:
        return False
    return True


@contextmanager
def ensure_daemon(cache: Path) -> Iterator[Mapping[str, str]]:
    """Yield the environment variables that programs need to reach the daemon. Raises NoDockerError."""
    if shutil.which("docker") is None:
        raise NoDockerError("the program docker is not installed")
    if is_answering({}):
        yield {}
    elif shutil.which("dockerd") is None:
        raise NoDockerError("no Docker daemon responds, and dockerd is not installed")
    elif os.geteuid() != 0:
        raise NoDockerError("no Docker daemon responds, and only root could start one")
    else:
        with _own_bridge(), _own_daemon(cache / "docker") as host:
            yield {"DOCKER_HOST": host}


@contextmanager
def _own_bridge() -> Iterator[None]:
    """Create a bridge. docker0 may belong to another daemon, and `--bridge none` would even remove it."""
    if shutil.which("ip") is None:
        raise NoDockerError("no Docker daemon responds, and one cannot be started without the program ip")
    with suppress(ProgramFailedError):
        # Left by a run that was killed.
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
    """Run a daemon and yield its address. Its images stay in `data` for the next run; everything else is removed."""
    data.mkdir(parents=True, exist_ok=True)
    # Short, because the paths of the sockets below it may have at most 107 bytes.
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
                env=dict(ENVIRONMENT),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            eventually(
                lambda: daemon.poll() is not None or is_answering({"DOCKER_HOST": host}), within=START_SECONDS
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
                # It leaves this mounted, so the directory could not be removed.
                run("umount", directory / "exec" / "netns" / "default")

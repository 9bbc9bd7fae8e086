"""Makes Java's cache of Kafka's classes, once for each .venv: a broker then starts in half the time."""

import fcntl
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from stack.broker import BrokerPorts
from stack.errors import StackError
from stack.free_ports import find_free_ports
from stack.java import class_cache
from stack.kafka import KafkaCluster

WRITE_SECONDS = 60


def ensure_class_cache(jars: Sequence[Path]) -> None:
    """Make the cache if there is none. Kafka also starts without it, so whatever goes wrong is no error."""
    path = class_cache(jars)
    if path.exists():
        return
    with (
        suppress(StackError, OSError, subprocess.TimeoutExpired),
        path.with_suffix(".lock").open("w") as lock,
    ):
        # Whoever finds it being made goes on without it.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("Preparing Kafka for quick starts (once)", flush=True)
        _make(path, jars)


def _make(path: Path, jars: Sequence[Path]) -> None:
    """Start a broker, and stop it: Java then writes down which classes it has loaded."""
    # Beside its place, so that it appears whole or not at all.
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=path.parent) as directory:
        cluster = KafkaCluster(Path(directory, "kafka"), [BrokerPorts(*find_free_ports(2))], jars)
        cluster.prepare()
        java, *arguments = cluster.brokers[0].command()
        log, written = Path(directory, "kafka.log"), Path(directory, "classes.aot")
        with log.open("wb") as output:
            broker = subprocess.Popen(
                [java, f"-XX:AOTCacheOutput={written}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            cluster.wait_ready(log, lambda: broker.poll() is None)
            broker.terminate()
            broker.wait(WRITE_SECONDS)
        finally:
            broker.kill()
            broker.wait()
        written.replace(path)

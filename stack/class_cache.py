"""Makes Java's cache of Kafka's classes, once per user: a broker then starts in half the time."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stack.broker import BrokerPorts
from stack.errors import StackError
from stack.free_ports import find_free_ports
from stack.java import class_cache
from stack.kafka import KafkaCluster, count_brokers
from stack.waiting import wait_until

START_SECONDS = 60
WRITE_SECONDS = 60


def ensure_class_cache(jars: Sequence[Path]) -> None:
    """Start a broker, let Java write down what it loaded, and stop it. Kafka also starts without, only slower."""
    path = class_cache(jars)
    if path.exists():
        return
    # Beside the cache, so that it appears whole or not at all, also when two stacks start for the first time at once.
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=path.parent) as name:
        directory = Path(name)
        written = directory / "classes.aot"
        cluster = KafkaCluster(directory / "kafka", [BrokerPorts(*find_free_ports(2))], jars)
        cluster.prepare()
        java, *arguments = cluster.brokers[0].command()
        log = directory / "kafka.log"
        with log.open("wb") as output:
            broker = subprocess.Popen(
                [java, f"-XX:AOTCacheOutput={written}", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            wait_until(
                lambda: count_brokers(cluster.bootstrap_servers) == 1,
                name="Kafka",
                log=log,
                seconds=START_SECONDS,
                running=lambda: broker.poll() is None,
            )
            broker.terminate()
            broker.wait(WRITE_SECONDS)
            written.replace(path)
        except (StackError, subprocess.TimeoutExpired, FileNotFoundError):
            pass
        finally:
            broker.kill()
            broker.wait()

"""The embedded Kafka cluster of one or three brokers, its users, and the class cache that halves their start time."""

import base64
import fcntl
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from shared.domain.kafka_principals import ADMIN, ALL_PRINCIPALS
from shared.platform.kafka.access import sasl_client
from shared.platform.kafka.access_setup import AccessAdmin, AccessRefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings
from stack.broker import BROKER_PRINCIPAL, Broker, BrokerPorts, class_cache_path
from stack.errors import StackError
from stack.jars import ensure_jars
from stack.kafka_passwords import ensure_passwords
from stack.ports import find_free_ports
from stack.processes import wait_until

CACHE_WRITE_SECONDS = 60

START_SECONDS = 120

USERS = tuple(principal.name for principal in ALL_PRINCIPALS)
"""All who log in with SCRAM. The brokers themselves do not."""


class KafkaCluster:
    """One broker for each of `ports`, with data below `directory`. The caller starts their commands and owns them.

    Raises StackError if the directory was created with another number of brokers.
    """

    def __init__(
        self,
        directory: Path,
        ports: Sequence[BrokerPorts],
        jars: Sequence[Path],
        extra_settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory.resolve()
        cluster_id = self._cluster_id(len(ports))
        self.password_directory = self.directory / "passwords"
        self.passwords = ensure_passwords(self.password_directory, [BROKER_PRINCIPAL, *USERS])
        self.brokers = [
            Broker(
                number,
                self.directory / str(number),
                cluster_id,
                tuple(ports),
                tuple(jars),
                self.passwords[BROKER_PRINCIPAL],
                extra_settings or {},
            )
            for number in range(1, len(ports) + 1)
        ]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    def client(self, principal: str = ADMIN.name) -> dict[str, str]:
        """Return the client settings of a principal."""
        return sasl_client(principal, self.passwords[principal])

    def prepare(self) -> None:
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(Broker.prepare, self.brokers))

    def wait_ready(self, log: Path, running: Callable[[], bool]) -> None:
        """Wait until all brokers answer and every principal can log in. Raises StackError."""
        wait_until(self._answers, name="Kafka", log=log, seconds=START_SECONDS, running=running)
        wait_until(self._has_users, name="Kafka", log=log, seconds=START_SECONDS, running=running)

    def _answers(self) -> bool:
        # Ask each broker: for a while the others still count a broker that was just killed.
        as_broker = _broker_client(self.passwords)
        return all(count_brokers(each.address, as_broker) == len(self.brokers) for each in self.brokers)

    def _has_users(self) -> bool:
        """Set the passwords of all users, and tell whether every broker knows them.

        Storage that was formatted by an earlier version has no users.
        """
        if not set_users(self.bootstrap_servers, self.passwords):
            return False
        return all(count_brokers(each.address, self.client()) > 0 for each in self.brokers)

    def _cluster_id(self, brokers: int) -> str:
        """Return the cluster id of this directory. Storage of different clusters or sizes must not be mixed."""
        path = self.directory / "cluster.json"
        if path.exists():
            known = json.loads(path.read_text())
            if known["brokers"] != brokers:
                raise StackError(
                    f"{self.directory} was created with BROKERS={known['brokers']}, not {brokers}.",
                    f"Start with BROKERS={known['brokers']}, or use another STACK_DIR.",
                )
            return str(known["cluster_id"])
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cluster_id": cluster_id, "brokers": brokers}) + "\n")
        return cluster_id


def set_users(bootstrap_servers: str, passwords: Mapping[str, str]) -> bool:
    """Set the passwords of all principals, logged in as the broker. Return whether Kafka did it."""
    settings = KafkaSettings(bootstrap_servers, client={**_broker_client(passwords), "log_level": "0"})
    try:
        AccessAdmin(settings).set_passwords({name: passwords[name] for name in USERS})
    except (AccessRefusedError, KafkaUnavailableError):
        return False
    return True


def _broker_client(passwords: Mapping[str, str]) -> dict[str, str]:
    return sasl_client(BROKER_PRINCIPAL, passwords[BROKER_PRINCIPAL], mechanism="PLAIN")


def count_brokers(bootstrap_servers: str, client: Mapping[str, str]) -> int:
    """Return how many brokers the cluster reports; 0 if none responds, or the client may not log in."""
    settings: dict[str, str | int | float | bool] = {
        **client,
        "bootstrap.servers": bootstrap_servers,
        "log_level": 0,
        "socket.timeout.ms": 2000,
        # A broker that starts is found soon, and so is a password that was set a moment ago.
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 100,
    }
    try:
        return len(AdminClient(settings).list_topics(timeout=2).brokers)
    except KafkaException:
        return 0


def install_kafka(cache: Path) -> list[Path]:
    """Return Kafka's jars: download those that `cache` lacks, and write the class cache if there is none."""
    jars = ensure_jars(cache)
    ensure_class_cache(jars)
    return jars


def ensure_class_cache(jars: Sequence[Path]) -> None:
    """Write the class cache if there is none. Kafka also starts without it, so failures are ignored."""
    path = class_cache_path(jars)
    if path.exists():
        return
    with (
        suppress(StackError, OSError, subprocess.TimeoutExpired),
        path.with_suffix(".lock").open("w") as lock,
    ):
        # If another process is writing it, continue without it.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _write_class_cache(path, jars)


def _write_class_cache(path: Path, jars: Sequence[Path]) -> None:
    """Start and stop a broker. Java writes the classes it has loaded when it exits."""
    # On the same file system, so that the cache appears complete or not at all.
    directory = path.with_suffix(".new")
    rmtree(directory, ignore_errors=True)
    try:
        written = _run_broker_once(directory, jars)
        written.replace(path)
    finally:
        rmtree(directory, ignore_errors=True)


def _run_broker_once(directory: Path, jars: Sequence[Path]) -> Path:
    cluster = KafkaCluster(directory / "kafka", [BrokerPorts(*find_free_ports(2))], jars)
    cluster.prepare()
    java, *arguments = cluster.brokers[0].command()
    log, written = directory / "kafka.log", directory / "classes.aot"
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
        broker.wait(CACHE_WRITE_SECONDS)
    finally:
        broker.kill()
        broker.wait()
    return written


if __name__ == "__main__":
    # The stack runs this beside itself. Nobody waits for it.
    os.nice(19)
    ensure_class_cache(ensure_jars(Path(sys.argv[1])))

"""A Kafka cluster of a test's own, whose data the test may lose."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.broker import BrokerPorts
from stack.engines import EmbeddedKafka
from stack.kafka import KafkaCluster, install_kafka
from stack.options import cache_directory
from stack.ports import find_free_ports
from stack.watchdog import Watchdog
from tests.engines import TestEngines, engine_directory
from tests.logs import attach_log


class LosableKafka:
    """One broker that keeps its port and passwords when its data is lost."""

    def __init__(self, directory: Path, watchdog: Watchdog) -> None:
        self._directory = directory
        self._watchdog = watchdog
        self._ports = [BrokerPorts(*find_free_ports(2))]
        self._kafka = self._make()

    def start(self) -> None:
        self._kafka.start()
        attach_log(self._directory / "kafka.log")

    def kill(self) -> None:
        self._kafka.kill()

    def lose(self) -> None:
        """Kill it and remove its topics, consumer groups, users and ACLs. `start` starts an empty cluster."""
        self._kafka.kill()
        data = self._directory / "kafka"
        shutil.rmtree(data / "1")
        (data / "cluster.json").unlink()
        self._kafka = self._make()

    @property
    def passwords(self) -> Path:
        return self._kafka.logins.directory

    def engines(self) -> TestEngines:
        """Return what a whole stack needs to use it."""
        return TestEngines("", self._kafka.bootstrap_servers, self._kafka.logins)

    def _make(self) -> EmbeddedKafka:
        cluster = KafkaCluster(self._directory / "kafka", self._ports, install_kafka(cache_directory()))
        cluster.prepare()
        return EmbeddedKafka(cluster, logs=self._directory, watchdog=self._watchdog)


@contextmanager
def losable_kafka() -> Iterator[LosableKafka]:
    watchdog = Watchdog()
    with engine_directory() as directory:
        kafka = LosableKafka(directory, watchdog)
        try:
            kafka.start()
            yield kafka
        finally:
            kafka.kill()
            watchdog.stop()

"""PostgreSQL and Kafka as plain child processes, without a supervisor: what tests and benches stand on."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.broker import BrokerPorts
from stack.child_process import ChildProcess
from stack.class_cache import ensure_class_cache
from stack.free_ports import find_free_ports
from stack.guardian import Guardian
from stack.jars import ensure_jars
from stack.kafka import KafkaCluster
from stack.options import cache_directory
from stack.postgres import Postgres


class EmbeddedPostgres(ChildProcess):
    """One PostgreSQL server; always on the same port and data."""

    def __init__(self, server: Postgres, *, log: Path, guardian: Guardian) -> None:
        super().__init__(server.command(), log=log, guardian=guardian, stop_signal=signal.SIGINT)
        self._server = server

    @property
    def url(self) -> str:
        return self._server.url

    def start(self, *, wait: bool = True) -> None:
        super().start()
        if wait:
            self.wait_ready()

    def restart(self) -> None:
        self.stop()
        self.start()

    def wait_ready(self) -> None:
        self._server.wait_ready(self.log, self.running)


class EmbeddedKafka:
    """The cluster, whose brokers are numbered from 1; always on the same ports and data."""

    def __init__(self, cluster: KafkaCluster, *, logs: Path, guardian: Guardian) -> None:
        self._cluster = cluster
        self._brokers = {
            broker.number: ChildProcess(broker.command(), log=logs / f"{broker.name}.log", guardian=guardian)
            for broker in cluster.brokers
        }

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

    def broker(self, number: int) -> ChildProcess:
        return self._brokers[number]

    def start(self, number: int | None = None, *, wait: bool = True) -> None:
        """Start one broker, or all that do not run, and wait until the whole cluster answers."""
        for broker in self._chosen(number):
            if not broker.running():
                broker.start()
        if wait:
            self.wait_ready()

    def stop(self, number: int | None = None) -> None:
        """All at once: the last brokers of a cluster that lost its majority would wait for it in vain."""
        for broker in self._chosen(number):
            broker.ask_to_stop()
        for broker in self._chosen(number):
            broker.wait_stopped()

    def kill(self, number: int | None = None) -> None:
        for broker in self._chosen(number):
            broker.kill()

    def freeze(self, number: int | None = None) -> None:
        for broker in self._chosen(number):
            broker.freeze()

    def thaw(self, number: int | None = None) -> None:
        for broker in self._chosen(number):
            broker.thaw()

    def wait_ready(self) -> None:
        started = list(self._brokers.values())
        self._cluster.wait_ready(started[0].log, lambda: all(broker.running() for broker in started))

    def _chosen(self, number: int | None) -> list[ChildProcess]:
        return list(self._brokers.values()) if number is None else [self._brokers[number]]


@dataclass(frozen=True)
class Engines:
    """Both engines, running."""

    postgres: EmbeddedPostgres
    kafka: EmbeddedKafka

    @property
    def database_url(self) -> str:
        return self.postgres.url

    @property
    def kafka_bootstrap_servers(self) -> str:
        return self.kafka.bootstrap_servers


@contextmanager
def embedded_engines(directory: Path, *, brokers: int = 1, durable: bool = False) -> Iterator[Engines]:
    """Start both below `directory`, and end them afterwards: gracefully when durable, at once when not."""
    directory.mkdir(parents=True, exist_ok=True)
    ports = find_free_ports(1 + 2 * brokers)
    server = Postgres(directory / "postgres", ports[0], durable=durable)
    broker_ports = [
        BrokerPorts(client, controller) for client, controller in zip(ports[1::2], ports[2::2], strict=True)
    ]
    jars = ensure_jars(cache_directory())
    ensure_class_cache(jars)
    cluster = KafkaCluster(directory / "kafka", broker_ports, jars)
    with ThreadPoolExecutor(2) as pool:
        for prepared in (pool.submit(server.prepare), pool.submit(cluster.prepare)):
            prepared.result()
    guardian = Guardian()
    engines = Engines(
        EmbeddedPostgres(server, log=directory / "postgres.log", guardian=guardian),
        EmbeddedKafka(cluster, logs=directory, guardian=guardian),
    )
    try:
        engines.kafka.start(wait=False)
        engines.postgres.start(wait=False)
        engines.postgres.wait_ready()
        engines.kafka.wait_ready()
        yield engines
    finally:
        for engine in (engines.kafka, engines.postgres):
            engine.stop() if durable else engine.kill()
        guardian.dismiss()

"""PostgreSQL and Kafka as child processes without a supervisor, for tests and benchmarks.

A test can kill, suspend and restart them.
"""

import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.broker import BrokerPorts
from stack.kafka import KafkaCluster, install_kafka
from stack.kafka_passwords import KafkaLogins
from stack.options import cache_directory
from stack.ports import find_free_ports
from stack.postgres import Postgres
from stack.processes import process_tree, send_signal, wait_until_gone
from stack.watchdog import Watchdog

STOP_SECONDS = 30


class ChildProcess:
    """Runs `command` with its output in `log`, until it is stopped or the process that started it dies."""

    def __init__(
        self,
        command: list[str],
        *,
        log: Path,
        watchdog: Watchdog,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        self.log = log
        self._command = command
        self._watchdog = watchdog
        self._stop_signal = stop_signal
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        assert not self.running(), "already running"
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
            )
        self._watchdog.watch(self._process.pid)

    def stop(self) -> None:
        """Request a stop and wait. Kill the process if it does not exit in time."""
        self.request_stop()
        self.wait_stopped()

    def request_stop(self) -> None:
        if self._process is not None and self.running():
            self.resume()
            self._process.send_signal(self._stop_signal)

    def wait_stopped(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the process and its children, and wait until all are gone."""
        if self._process is None:
            return
        tree = process_tree(self.pid)
        send_signal(signal.SIGKILL, tree)
        self._process.wait()
        wait_until_gone(tree, STOP_SECONDS)

    def suspend(self) -> None:
        """Send SIGSTOP: the process keeps its connections, but does not respond."""
        send_signal(signal.SIGSTOP, process_tree(self.pid))

    def resume(self) -> None:
        send_signal(signal.SIGCONT, process_tree(self.pid))


class EmbeddedPostgres(ChildProcess):
    """One PostgreSQL server. It keeps its port and data across restarts."""

    def __init__(self, server: Postgres, *, log: Path, watchdog: Watchdog) -> None:
        super().__init__(server.command(), log=log, watchdog=watchdog, stop_signal=signal.SIGINT)
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
    """A Kafka cluster with brokers numbered from 1. It keeps its ports and data across restarts."""

    def __init__(self, cluster: KafkaCluster, *, logs: Path, watchdog: Watchdog) -> None:
        self._cluster = cluster
        self._brokers = {
            broker.number: ChildProcess(broker.command(), log=logs / f"{broker.name}.log", watchdog=watchdog)
            for broker in cluster.brokers
        }

    @property
    def bootstrap_servers(self) -> str:
        return self._cluster.bootstrap_servers

    @property
    def logins(self) -> KafkaLogins:
        return KafkaLogins(self._cluster.password_directory)

    def broker(self, number: int) -> ChildProcess:
        return self._brokers[number]

    def start(self, number: int | None = None, *, wait: bool = True) -> None:
        """Start one broker, or all that do not run, and wait until the whole cluster responds."""
        for broker in self._chosen(number):
            if not broker.running():
                broker.start()
        if wait:
            self.wait_ready()

    def stop(self, number: int | None = None) -> None:
        """Stop one broker, or all at the same time: the last brokers would wait in vain for a lost majority."""
        for broker in self._chosen(number):
            broker.request_stop()
        for broker in self._chosen(number):
            broker.wait_stopped()

    def kill(self, number: int | None = None) -> None:
        for broker in self._chosen(number):
            broker.kill()

    def suspend(self, number: int | None = None) -> None:
        for broker in self._chosen(number):
            broker.suspend()

    def resume(self, number: int | None = None) -> None:
        for broker in self._chosen(number):
            broker.resume()

    def wait_ready(self) -> None:
        started = list(self._brokers.values())
        self._cluster.wait_ready(started[0].log, lambda: all(broker.running() for broker in started))

    def _chosen(self, number: int | None) -> list[ChildProcess]:
        return list(self._brokers.values()) if number is None else [self._brokers[number]]


@dataclass(frozen=True)
class Engines:
    """Both engines while they run."""

    postgres: EmbeddedPostgres
    kafka: EmbeddedKafka

    @property
    def database_url(self) -> str:
        return self.postgres.url

    @property
    def kafka_bootstrap_servers(self) -> str:
        return self.kafka.bootstrap_servers

    @property
    def kafka_logins(self) -> KafkaLogins:
        return self.kafka.logins


@contextmanager
def embedded_engines(directory: Path, *, brokers: int = 1, durable: bool = False) -> Iterator[Engines]:
    """Start both engines below `directory`. Afterwards stop them if `durable`, else kill them."""
    directory.mkdir(parents=True, exist_ok=True)
    ports = find_free_ports(1 + 2 * brokers)
    server = Postgres(directory / "postgres", ports[0], durable=durable)
    broker_ports = [
        BrokerPorts(client, controller) for client, controller in zip(ports[1::2], ports[2::2], strict=True)
    ]
    cluster = KafkaCluster(directory / "kafka", broker_ports, install_kafka(cache_directory()))
    with ThreadPoolExecutor(2) as pool:
        for prepared in (pool.submit(server.prepare), pool.submit(cluster.prepare)):
            prepared.result()
    watchdog = Watchdog()
    engines = Engines(
        EmbeddedPostgres(server, log=directory / "postgres.log", watchdog=watchdog),
        EmbeddedKafka(cluster, logs=directory, watchdog=watchdog),
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
        watchdog.stop()

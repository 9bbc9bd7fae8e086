"""Kafka of the version before, which trusted every client, moves to principals: by itself, and without downtime."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from mizan.__main__ import main
from shared.domain.kafka_principals import ADMIN, SCHEDULER, WEBHOOKS
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELIVER
from shared.platform.kafka.access import sasl_client
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after
from shared.platform.kafka.records import Record, Task
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import KafkaSettings
from stack.broker import BrokerPorts
from stack.engines import EmbeddedKafka
from stack.kafka import KafkaCluster, count_brokers, install_kafka
from stack.options import cache_directory
from stack.ports import find_free_ports
from stack.watchdog import Watchdog
from tests.shared.platform.kafka.harness import running
from tests.topics import kafka_variables
from tests.waiting import eventually

pytestmark = [pytest.mark.kills, pytest.mark.timeout(300)]

WITHOUT_ACCESS_CONTROL = {
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": "",
    "super.users": "",
}


class UpgradedKafka:
    """One broker, with the same ports and data at each start and other settings."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._client, self._controller, self._old = find_free_ports(3)
        self.servers = f"127.0.0.1:{self._client}"
        self.old_servers = f"127.0.0.1:{self._old}"

    @contextmanager
    def running(self, settings: Mapping[str, str], *, is_old: bool = False) -> Iterator[KafkaCluster]:
        ports = [BrokerPorts(self._client, self._controller)]
        cluster = KafkaCluster(self._directory / "kafka", ports, install_kafka(cache_directory()), settings)
        cluster.prepare()
        watchdog = Watchdog()
        kafka = EmbeddedKafka(cluster, logs=self._directory, watchdog=watchdog)
        try:
            kafka.start(wait=not is_old)
            if is_old:
                eventually(lambda: count_brokers(self.servers, {}) == 1, within=120)
            yield cluster
        finally:
            kafka.stop()
            watchdog.stop()

    def two_listeners(self) -> dict[str, str]:
        """As docs/upgrading.md says: whoever uses the old listener keeps all rights."""
        clients = f"CLIENT://{self.servers},OLD://{self.old_servers}"
        return {
            "listeners": f"{clients},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,OLD:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "super.users": "User:mizan-broker;User:mizan-admin;User:ANONYMOUS",
        }


@pytest.fixture
def kafka(tmp_path: Path) -> UpgradedKafka:
    return UpgradedKafka(tmp_path)


def settings(servers: str, login: Mapping[str, str]) -> KafkaSettings:
    return KafkaSettings(servers, "", 1, {**login, "log_level": "0"})


def send(kafka: KafkaSettings, *values: bytes) -> None:
    producer = ConfirmingProducer(kafka, "test")
    producer.send(
        [OutgoingRecord(WEBHOOKS_DELIVER.name, value, value) for value in values], on_wait=raise_after(60)
    )
    producer.close()


class _NoDeadLetters:
    def send(self, poison: Sequence[tuple[Record, str]], group: str) -> None:
        raise AssertionError(f"{poison} of {group}")


@contextmanager
def consuming(kafka: KafkaSettings, seen: list[bytes | None]) -> Iterator[None]:
    """Run a consumer of webhooks.deliver, as the webhook service does."""

    def handle(tasks: Sequence[Task]) -> None:
        seen.extend(task.record.value for task in tasks)

    loop = ConsumerLoop(
        kafka,
        str(WEBHOOKS_DELIVER.group),
        [WEBHOOKS_DELIVER.name],
        BatchHandler(handle, 10),
        _NoDeadLetters(),
        decode=lambda value: value,
    )
    with running(loop):
        yield


def test_data_of_the_version_before_move_over_at_the_next_start(kafka: UpgradedKafka) -> None:
    """Its storage has no users. The records stay, and who does not log in is refused."""
    seen: list[bytes | None] = []
    with kafka.running(WITHOUT_ACCESS_CONTROL, is_old=True):
        ensure_topics(settings(kafka.servers, {}), ALL_TOPICS)
        send(settings(kafka.servers, {}), b"kept")
    with kafka.running({}) as cluster:
        assert count_brokers(kafka.servers, {}) == 0
        with consuming(settings(kafka.servers, cluster.client(ADMIN.name)), seen):
            eventually(lambda: seen == [b"kept"])


def test_services_move_one_after_another_while_there_are_two_listeners(
    kafka: UpgradedKafka, tmp_path: Path
) -> None:
    """`mizan topics` works without a login on the old listener. Nothing is lost while old and new share a group."""
    seen: list[bytes | None] = []
    with kafka.running(kafka.two_listeners()) as cluster:
        environment = {
            "DATABASE_URL": "postgresql://mizan@127.0.0.1:9/mizan",
            "KAFKA_BOOTSTRAP_SERVERS": kafka.old_servers,
            "STACK_DIR": str(tmp_path),
        }
        words = ["topics", "--passwords", str(cluster.password_directory)]
        done = CliRunner().invoke(main, words, env=environment, catch_exceptions=False)
        assert (done.exit_code, done.stderr) == (0, "")
        admin = kafka_variables(settings(kafka.servers, cluster.client(ADMIN.name)))
        found = CliRunner().invoke(main, ["doctor"], env={**environment, **admin}, catch_exceptions=False)
        assert found.exit_code == 1
        assert (
            f"  too wide: broker 1 lets clients in without a login at OLD://{kafka.old_servers}\n"
            in found.stdout
        )
        before, after = (
            settings(kafka.old_servers, {}),
            settings(kafka.servers, cluster.client(WEBHOOKS.name)),
        )
        relay = settings(kafka.servers, cluster.client(SCHEDULER.name))
        with consuming(before, seen):
            send(before, b"1", b"2", b"3")
            eventually(lambda: {b"1", b"2", b"3"} <= set(seen))
            with consuming(after, seen):
                send(before, b"4", b"5", b"6")
                send(relay, b"7", b"8", b"9")
                eventually(lambda: len(set(seen)) == 9)
        with consuming(after, seen):
            send(relay, b"10")
            eventually(lambda: b"10" in seen)
    with kafka.running({}), consuming(after, seen):
        assert count_brokers(kafka.old_servers, {}) == 0
        assert count_brokers(kafka.servers, sasl_client("ANONYMOUS", "nothing")) == 0
        send(relay, b"11")
        eventually(lambda: b"11" in seen)

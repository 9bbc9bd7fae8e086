"""How our Kafka clients are set up. Create them after fork; what the environment says wins over us."""

import logging
from collections.abc import Callable, Mapping
from time import monotonic

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings

_log = logging.getLogger("mizan.kafka.client")

ClientConfig = dict[str, str | int | float | bool]
OnCommit = Callable[[KafkaError | None, list[TopicPartition]], None]


def producer(settings: KafkaSettings, role: str, **special: str | int) -> confluent_kafka.Producer:
    """An idempotent producer: a retry inside it neither doubles nor reorders."""
    config = {
        **_common(settings, role),
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 2,
        "compression.type": "lz4",
        # A word for each record that arrived would cost as much as sending it.
        "delivery.report.only.error": True,
        # The partitioner of Kafka's own tools, so that a record put back by hand lands where ours do.
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": 200_000,
        # A record for a topic that does not exist is refused after this long, and holds up its batch until then.
        "topic.metadata.propagation.max.ms": 5_000,
        **_dotted(special),
        **settings.client,
    }
    return confluent_kafka.Producer(config, logger=_log)


def consumer(
    settings: KafkaSettings, role: str, on_commit: OnCommit | None = None, **special: str | int
) -> confluent_kafka.Consumer:
    """A member of the group of `role`; offsets are committed by hand, last, and `on_commit` hears how it went."""
    config = {
        **_common(settings, role),
        **({"on_commit": on_commit} if on_commit else {}),
        "group.id": group_name(settings, role),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",
        # A killed worker's partitions go to others after this long.
        "session.timeout.ms": 15_000,
        # Soon told of a rebalance, during which commits can fail.
        "heartbeat.interval.ms": 1_000,
        "max.poll.interval.ms": 120_000,
        # librdkafka reads ahead; these bound its memory and wake it up quickly after a full queue.
        "queued.max.messages.kbytes": 4_096,
        "queued.min.messages": 5_000,
        "fetch.queue.backoff.ms": 10,
        "fetch.wait.max.ms": 250,
        **_dotted(special),
        **settings.client,
    }
    return confluent_kafka.Consumer(config, logger=_log)


def admin(settings: KafkaSettings, role: str) -> AdminClient:
    return AdminClient({**_common(settings, role), **settings.client}, logger=_log)


def group_name(settings: KafkaSettings, role: str) -> str:
    return f"{settings.topic_prefix}{role}"


def topic_name(settings: KafkaSettings, name: str) -> str:
    return f"{settings.topic_prefix}{name}"


def _common(settings: KafkaSettings, role: str) -> ClientConfig:
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": f"mizan-{role}",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "socket.keepalive.enable": True,
    }


def _dotted(special: Mapping[str, str | int]) -> ClientConfig:
    return {name.replace("_", "."): value for name, value in special.items()}


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = monotonic() + seconds

    def left(self) -> float:
        """For the next question; raises KafkaUnavailableError when nothing is left."""
        left = self._at - monotonic()
        if left <= 0:
            raise KafkaUnavailableError(f"no answer within {self._seconds:g} s")
        return left

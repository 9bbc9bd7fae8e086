"""The configuration of our Kafka clients. Create clients after fork; settings of the environment win over ours."""

import logging
import re
from collections.abc import Callable, Mapping
from threading import _DummyThread, current_thread
from time import monotonic
from typing import Any, Final

import confluent_kafka
from confluent_kafka.admin import AdminClient

from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.refusals import RefusedLoginFilter, remember_errors
from shared.platform.settings import KafkaSettings


class IgnoredPropertyFilter(logging.Filter):
    """Drops librdkafka's warnings about properties of the other kind of client.

    `KAFKA_CLIENT_…` is for all clients of a process. A producer ignores `session.timeout.ms`, as it should.
    """

    _WARNING: Final = re.compile(r"\bis a (consumer|producer) property and will be ignored by this ")

    def filter(self, record: logging.LogRecord) -> bool:
        return not self._WARNING.search(record.getMessage())


_log = logging.getLogger("mizan.kafka.client")
_log.addFilter(RefusedLoginFilter())
_log.addFilter(IgnoredPropertyFilter())

ClientConfig = dict[str, str | int | float | bool]
Callbacks = Mapping[str, Callable[..., None]]
"""By the name of their property, such as `on_commit`."""


def producer(settings: KafkaSettings, name: str, **special: str | int) -> confluent_kafka.Producer:
    """Create an idempotent producer: its own retries neither duplicate nor reorder records."""
    config = {
        **_common(settings, name),
        "error_cb": remember_errors(settings),
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": 2,
        "compression.type": "lz4",
        # A report for each record that arrived would cost as much as sending it.
        "delivery.report.only.error": True,
        # The partitioner of Kafka's own tools, so that a record republished by hand gets the same partition.
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": 200_000,
        # A record for a topic that does not exist is refused after this long, and holds up its batch until then.
        "topic.metadata.propagation.max.ms": 5_000,
        **_dotted(special),
        **settings.client,
    }
    return confluent_kafka.Producer(config, logger=_log)


def consumer(
    settings: KafkaSettings, group: str, callbacks: Callbacks | None = None, **special: str | int
) -> confluent_kafka.Consumer:
    """Create a member of `group`. Offsets are committed by hand. The callbacks are called while it is polled."""
    config = {
        **_common(settings, group),
        **(callbacks or {}),
        "group.id": group_name(settings, group),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",
        # After this long, the partitions of a killed worker go to others. Brokers allow no less.
        "session.timeout.ms": 6_000,
        # Short, to learn quickly of a rebalance, during which commits can fail.
        "heartbeat.interval.ms": 1_000,
        "max.poll.interval.ms": 120_000,
        # librdkafka reads ahead: these limit its memory, and let it fetch again soon after its queue was full.
        "queued.max.messages.kbytes": 4_096,
        "queued.min.messages": 5_000,
        "fetch.queue.backoff.ms": 10,
        # A fetch is answered as soon as there is a record. Idle brokers have to answer four times as many with 250.
        "fetch.wait.max.ms": 1_000,
        **_dotted(special),
        **settings.client,
    }
    return confluent_kafka.Consumer(config, logger=_log)


class _AdminClient(AdminClient):
    """Is never destroyed in a thread of librdkafka, which would abort the process.

    Its answers come in such a thread, and Python's garbage collection can run there.
    """

    def __del__(self) -> None:
        if isinstance(current_thread(), _DummyThread):
            _dropped_admins.append(self)


_dropped_admins: list[_AdminClient] = []
"""Clients that were collected in a thread that Python did not start. The next thread that makes one destroys them."""


def admin(settings: KafkaSettings, name: str) -> AdminClient:
    _dropped_admins.clear()
    config: dict[str, Any] = {
        **_common(settings, name),
        "error_cb": remember_errors(settings),
        **settings.client,
    }
    return _AdminClient(config, logger=_log)


def group_name(settings: KafkaSettings, group: str) -> str:
    return f"{settings.topic_prefix}{group}"


def topic_name(settings: KafkaSettings, topic: str) -> str:
    return f"{settings.topic_prefix}{topic}"


def _common(settings: KafkaSettings, name: str) -> ClientConfig:
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": f"mizan-{name}",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "socket.keepalive.enable": True,
    }


def _dotted(special: Mapping[str, str | int]) -> ClientConfig:
    return {name.replace("_", "."): value for name, value in special.items()}


class Deadline:
    """One time limit for several requests that follow each other."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left for the next request; raises KafkaUnavailableError when none are."""
        left = self._at - monotonic()
        if left <= 0:
            raise KafkaUnavailableError(f"no answer within {self._seconds:g} s")
        return left

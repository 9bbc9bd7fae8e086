"""Produces records to topics as the services do, with any timestamp."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from confluent_kafka import Producer

from shared.domain.messages import DeliveryDue, encode
from shared.platform.kafka import clients
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings

_NOW = timedelta()


class Records:
    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._producer: Producer = clients.producer(settings, "test")

    def put(
        self,
        topic: Topic,
        count: int = 1,
        *,
        ago: timedelta = _NOW,
        due_in: timedelta = _NOW,
        partition: int = 0,
    ) -> None:
        """Produce deliveries that are due in `due_in`, with a timestamp `ago` in the past."""
        now = datetime.now(UTC)
        for _ in range(count):
            self._producer.produce(
                clients.topic_name(self._settings, topic.name),
                key=str(uuid4()),
                value=encode(DeliveryDue(uuid4(), uuid4(), 2, now + due_in)),
                partition=partition,
                timestamp=int((now - ago).timestamp() * 1000),
            )
        assert self._producer.flush(20) == 0

"""Reads what is in a topic, from its beginning."""

from time import monotonic
from uuid import uuid4

from confluent_kafka import TopicPartition

from shared.domain.messages import AnyMessage, IntentEvent, decode
from shared.domain.topics import PAYMENT_INTENT_EVENTS
from shared.platform.kafka import clients
from shared.platform.settings import KafkaSettings


class TopicReader:
    """Keeps its place, so that each look brings only what is new."""

    def __init__(self, settings: KafkaSettings, topic: str = PAYMENT_INTENT_EVENTS.name) -> None:
        self._topic = clients.topic_name(settings, topic)
        self._consumer = clients.consumer(settings, f"reader-{uuid4()}")
        partitions = self._consumer.list_topics(self._topic, timeout=10).topics[self._topic].partitions
        self._consumer.assign([TopicPartition(self._topic, number, 0) for number in partitions])
        self.messages: list[AnyMessage] = []

    def read(self, count: int, within: float = 30.0) -> list[AnyMessage]:
        """Reads on until there are so many messages in all, and a moment longer for any that should not be."""
        deadline = monotonic() + within
        while len(self.messages) < count and monotonic() < deadline:
            self._take(0.2)
        assert len(self.messages) >= count, f"only {len(self.messages)} of {count} messages came"
        self._take(0.3)
        return self.messages

    def read_to_end(self) -> list[AnyMessage]:
        """Everything that is in the topic now."""
        ends = [
            self._consumer.get_watermark_offsets(place, timeout=10) for place in self._consumer.assignment()
        ]
        while len(self.messages) < sum(high - low for low, high in ends):
            self._take(0.2)
        return self.messages

    def events(self, count: int, within: float = 30.0) -> list[IntentEvent]:
        return [message for message in self.read(count, within) if isinstance(message, IntentEvent)]

    def _take(self, seconds: float) -> None:
        for message in self._consumer.consume(1000, seconds):
            assert message.error() is None, message.error()
            self.messages.append(decode(message.value()))

    def close(self) -> None:
        self._consumer.close()

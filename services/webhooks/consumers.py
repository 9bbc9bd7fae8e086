"""The consumers that a process of this service can run, each with a consumer group and a thread of its own."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from services.webhooks.delay import DatabaseClock, DelayHandler
from services.webhooks.http.client import WebhookClient
from services.webhooks.pipeline.handler import DeliveryPipeline
from services.webhooks.pipeline.lookup import DeliveryLookup, SigningKeys
from services.webhooks.pipeline.recording import Recorder
from shared.domain.dead_letters.producer import KafkaDeadLetterProducer
from shared.domain.messages import decode
from shared.domain.topics import (
    PAYMENT_INTENT_EVENTS,
    WEBHOOKS_DELAY,
    WEBHOOKS_DELIVER,
    WEBHOOKS_RESEND,
    WEBHOOKS_SLOW,
)
from shared.platform.database.pool import Database
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.handlers import BatchHandler, Handler
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.topic_definition import Topic
from shared.platform.keys import open_keys
from shared.platform.settings import KeyPurpose, Settings

_DELAY_BATCH = 500


class UnknownConsumerError(Exception):
    """The command line names a consumer that does not exist."""


class ConsumerFactory:
    """Builds the consumer loops of one process from what they share."""

    def __init__(self, settings: Settings, database: Database, response_limit_s: float = 10.0) -> None:
        """`response_limit_s` is how long receivers have to respond (§6.6); tests shorten it."""
        self._response_limit_s = response_limit_s
        self._settings = settings
        self._database = database
        self._keys = SigningKeys(open_keys(settings).open_box(KeyPurpose.WEBHOOK_SECRETS))
        self._clock = DatabaseClock(database)
        self._to_close = ExitStack()

    def build_loop(self, definition: "ConsumerDefinition") -> ConsumerLoop:
        kafka = self._settings.kafka
        handler = definition.build_handler(self, definition)
        return ConsumerLoop(
            kafka,
            definition.group,
            [definition.topic.name],
            handler,
            KafkaDeadLetterProducer(kafka),
            decode=decode,
        )

    def close(self) -> None:
        """Close what the loops used. Call it once they have ended."""
        self._to_close.close()

    def build_delay(self, definition: "ConsumerDefinition") -> Handler:
        return BatchHandler(DelayHandler(self._clock, self._producer(definition)).move_due, _DELAY_BATCH)

    def build_pipeline(self, definition: "ConsumerDefinition") -> Handler:
        webhooks = self._settings.webhooks
        handler = DeliveryPipeline(
            definition.name,
            DeliveryLookup(self._database, self._keys),
            Recorder(self._database, self._producer(definition), webhooks.retry_delays),
            WebhookClient(
                allow_private=webhooks.allow_private,
                ca_file=webhooks.ca_file,
                proxy=webhooks.proxy,
                limit_s=self._response_limit_s,
            ),
            webhooks,
            reads_events=definition.topic is PAYMENT_INTENT_EVENTS,
            has_slow_pipeline=definition.topic is not WEBHOOKS_SLOW,
        )
        self._to_close.callback(handler.close)
        return handler

    def _producer(self, definition: "ConsumerDefinition") -> ConfirmingProducer:
        producer = ConfirmingProducer(self._settings.kafka, definition.group)
        self._to_close.callback(producer.close)
        return producer


@dataclass(frozen=True, slots=True)
class ConsumerDefinition:
    name: str
    topic: Topic
    build_handler: Callable[[ConsumerFactory, "ConsumerDefinition"], Handler]

    @property
    def group(self) -> str:
        assert self.topic.group is not None
        return self.topic.group


CONSUMERS = (
    ConsumerDefinition("intake", PAYMENT_INTENT_EVENTS, ConsumerFactory.build_pipeline),
    ConsumerDefinition("deliver", WEBHOOKS_DELIVER, ConsumerFactory.build_pipeline),
    ConsumerDefinition("slow", WEBHOOKS_SLOW, ConsumerFactory.build_pipeline),
    ConsumerDefinition("resend", WEBHOOKS_RESEND, ConsumerFactory.build_pipeline),
    *(
        ConsumerDefinition(topic.name.removeprefix("webhooks."), topic, ConsumerFactory.build_delay)
        for topic in WEBHOOKS_DELAY
    ),
)


def select_consumers(names: Sequence[str]) -> list[ConsumerDefinition]:
    """Return the named consumers, or all if none is named. `delay` selects all eight delay topics.

    Raises UnknownConsumerError for a name that does not exist.
    """
    known = {consumer.name.partition(".")[0] for consumer in CONSUMERS}
    for name in names:
        if name not in known:
            raise UnknownConsumerError(f"unknown consumer {name!r}; choose from {', '.join(sorted(known))}")
    return [consumer for consumer in CONSUMERS if not names or consumer.name.partition(".")[0] in names]

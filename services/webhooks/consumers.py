"""The parts that a process of this service can play, each a consumer with a group and a thread of its own."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from services.webhooks.delay import DatabaseClock, DelayHandler
from services.webhooks.http.client import WebhookClient
from services.webhooks.intake import Intake
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
from shared.platform.encryption import SecretBox
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.handlers import BatchHandler, Handler
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import Settings

_INTAKE_BATCH = 1000
_DELAY_BATCH = 500


class UnknownConsumerError(Exception):
    """Asked for a part that nobody here can play."""


class ConsumerFactory:
    """Makes the consumers of one process, out of what they share."""

    def __init__(self, settings: Settings, database: Database, answer_within_s: float = 10.0) -> None:
        """§6.6 says how long receivers have to answer; tests may not want to wait as long."""
        self._answer_within_s = answer_within_s
        self._settings = settings
        self._database = database
        self._keys = SigningKeys(SecretBox(settings.secret_keys))
        self._clock = DatabaseClock(database)
        self._to_close = ExitStack()

    def loop(self, role: "ConsumerDefinition") -> ConsumerLoop:
        kafka = self._settings.kafka
        handler = role.make(self, role)
        return ConsumerLoop(
            kafka, role.group, [role.topic.name], handler, KafkaDeadLetterProducer(kafka), decode=decode
        )

    def close(self) -> None:
        """Once the loops have ended."""
        self._to_close.close()

    def intake(self, role: "ConsumerDefinition") -> Handler:
        return BatchHandler(Intake(self._database, self._producer(role)).handle, _INTAKE_BATCH)

    def delay(self, role: "ConsumerDefinition") -> Handler:
        return BatchHandler(DelayHandler(self._clock, self._producer(role)).move_due, _DELAY_BATCH)

    def deliver(self, role: "ConsumerDefinition") -> Handler:
        webhooks = self._settings.webhooks
        handler = DeliveryPipeline(
            role.name,
            DeliveryLookup(self._database, self._keys),
            Recorder(self._database, self._producer(role), webhooks.retry_delays),
            WebhookClient(
                allow_private=webhooks.allow_private,
                ca_file=webhooks.ca_file,
                limit_s=self._answer_within_s,
            ),
            webhooks,
            has_slow_lane=role.topic is not WEBHOOKS_SLOW,
        )
        self._to_close.callback(handler.close)
        return handler

    def _producer(self, role: "ConsumerDefinition") -> ConfirmingProducer:
        producer = ConfirmingProducer(self._settings.kafka, role.group)
        self._to_close.callback(producer.close)
        return producer


@dataclass(frozen=True, slots=True)
class ConsumerDefinition:
    name: str
    topic: Topic
    make: Callable[[ConsumerFactory, "ConsumerDefinition"], Handler]

    @property
    def group(self) -> str:
        assert self.topic.group is not None
        return self.topic.group


CONSUMERS = (
    ConsumerDefinition("intake", PAYMENT_INTENT_EVENTS, ConsumerFactory.intake),
    ConsumerDefinition("deliver", WEBHOOKS_DELIVER, ConsumerFactory.deliver),
    ConsumerDefinition("slow", WEBHOOKS_SLOW, ConsumerFactory.deliver),
    ConsumerDefinition("resend", WEBHOOKS_RESEND, ConsumerFactory.deliver),
    *(
        ConsumerDefinition(topic.name.removeprefix("webhooks."), topic, ConsumerFactory.delay)
        for topic in WEBHOOKS_DELAY
    ),
)


def select_consumers(names: Sequence[str]) -> list[ConsumerDefinition]:
    """All, or those named; `delay` means all eight."""
    known = {role.name.partition(".")[0] for role in CONSUMERS}
    for name in names:
        if name not in known:
            raise UnknownConsumerError(f"there is no part {name!r}; there are {', '.join(sorted(known))}")
    return [role for role in CONSUMERS if not names or role.name.partition(".")[0] in names]

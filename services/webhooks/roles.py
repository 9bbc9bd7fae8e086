"""The parts that a process of this service can play, each a consumer with a group and a thread of its own."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from services.webhooks.database_clock import DatabaseClock
from services.webhooks.delaying import Delaying
from services.webhooks.delivering import Delivering
from services.webhooks.intake import Intake
from services.webhooks.looking import Looking
from services.webhooks.recording import Recording
from services.webhooks.sending import Sender
from services.webhooks.signing_keys import SigningKeys
from shared.domain.dead_letters.producer import KafkaDeadLetterBox
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


class UnknownRoleError(Exception):
    """Asked for a part that nobody here can play."""


class Workshop:
    """Makes the consumers of one process, out of what they share."""

    def __init__(self, settings: Settings, database: Database, answer_within_s: float = 10.0) -> None:
        """§6.6 says how long receivers have to answer; tests may not want to wait as long."""
        self._answer_within_s = answer_within_s
        self._settings = settings
        self._database = database
        self._keys = SigningKeys(SecretBox(settings.secret_keys))
        self._clock = DatabaseClock(database)
        self._to_close = ExitStack()

    def loop(self, role: "Role") -> ConsumerLoop:
        kafka = self._settings.kafka
        handler = role.make(self, role)
        return ConsumerLoop(
            kafka, role.group, [role.topic.name], handler, KafkaDeadLetterBox(kafka), decode=decode
        )

    def close(self) -> None:
        """Once the loops have ended."""
        self._to_close.close()

    def intake(self, role: "Role") -> Handler:
        return BatchHandler(Intake(self._database, self._producer(role)).take_in, _INTAKE_BATCH)

    def delay(self, role: "Role") -> Handler:
        return BatchHandler(Delaying(self._clock, self._producer(role)).move_due, _DELAY_BATCH)

    def deliver(self, role: "Role") -> Handler:
        webhooks = self._settings.webhooks
        handler = Delivering(
            role.name,
            Looking(self._database, self._keys),
            Recording(self._database, self._producer(role), webhooks.retry_delays),
            Sender(
                allow_private=webhooks.allow_private,
                ca_file=webhooks.ca_file,
                limit_s=self._answer_within_s,
            ),
            webhooks,
            has_slow_lane=role.topic is not WEBHOOKS_SLOW,
        )
        self._to_close.callback(handler.close)
        return handler

    def _producer(self, role: "Role") -> ConfirmingProducer:
        producer = ConfirmingProducer(self._settings.kafka, role.group)
        self._to_close.callback(producer.close)
        return producer


@dataclass(frozen=True, slots=True)
class Role:
    name: str
    topic: Topic
    make: Callable[[Workshop, "Role"], Handler]

    @property
    def group(self) -> str:
        assert self.topic.group is not None
        return self.topic.group


ROLES = (
    Role("intake", PAYMENT_INTENT_EVENTS, Workshop.intake),
    Role("deliver", WEBHOOKS_DELIVER, Workshop.deliver),
    Role("slow", WEBHOOKS_SLOW, Workshop.deliver),
    Role("resend", WEBHOOKS_RESEND, Workshop.deliver),
    *(Role(topic.name.removeprefix("webhooks."), topic, Workshop.delay) for topic in WEBHOOKS_DELAY),
)


def chosen_roles(names: Sequence[str]) -> list[Role]:
    """All, or those named; `delay` means all eight."""
    known = {role.name.partition(".")[0] for role in ROLES}
    for name in names:
        if name not in known:
            raise UnknownRoleError(f"there is no part {name!r}; there are {', '.join(sorted(known))}")
    return [role for role in ROLES if not names or role.name.partition(".")[0] in names]

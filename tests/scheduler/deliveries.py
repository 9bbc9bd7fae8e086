"""Pending deliveries and events, and records in Kafka, for tests of the requeue jobs."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import time
from typing import Any
from uuid import UUID

from confluent_kafka import KafkaException, TopicPartition
from prometheus_client import REGISTRY

from services.scheduler.requeue_sweep import RequeueThresholds
from shared.domain.deliveries.pause import pause_webhooks, resume_webhooks
from shared.domain.messages import AnyMessage, DeliveryDue, IntentEvent, decode, encode
from shared.platform.database.pool import Database
from shared.platform.kafka import clients
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from tests.topics import commit_offset

MINUTE = 60.0
# The default thresholds, but every run sweeps and measures the backlog again.
IMPATIENT = RequeueThresholds(sweep_interval_s=0, poll_interval_s=0)

_APPLICATION = """
with merchant as (insert into merchants (name) values ('Tripoli Coffee') returning id)
insert into applications (merchant_id, name, webhook_url) select id, 'shop', 'https://shop.example' from merchant
returning id"""
_DELIVERIES = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, step, next_due_at,
                                requeued_at, set_aside_at)
select uuidv7(), uuidv7(), %(application)s, 'payment_intent.succeeded', 'https://shop.example', 1, %(status)s,
       %(step)s, case when %(status)s = 'pending' then mizan_now() - make_interval(secs => %(overdue_s)s) end,
       mizan_now() - make_interval(secs => %(requeued_s_ago)s), case when %(set_aside)s then mizan_now() end
from generate_series(1, %(count)s) returning id"""
_EVENTS = """
with intents as (
    insert into payment_intents (application_id, merchant_reference, reference, amount, currency, status, expires_at)
    select %(application)s, uuidv7(), uuidv7(), 25000, 'LYD', 'succeeded', mizan_now()
    from generate_series(1, %(count)s) returning uuid
)
insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at, republished_at)
select uuidv7(make_interval(secs => -%(age_s)s)), uuid, 2, %(kind)s, mizan_now(),
       case when %(taken_in)s then mizan_now() end, mizan_now() - make_interval(secs => %(requeued_s_ago)s)
from intents returning id"""


def metric(name: str) -> float:
    return REGISTRY.get_sample_value(name) or 0


class Tables:
    """Rows in the database, of one application or more."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.application = self.make_application()

    def make_application(self) -> UUID:
        ((made,),) = self.run(_APPLICATION)
        return UUID(str(made))

    def pause(self, application: UUID | None = None) -> None:
        with self._database.transaction() as connection:
            pause_webhooks(connection, application or self.application)

    def resume(self, application: UUID | None = None) -> None:
        with self._database.transaction() as connection:
            resume_webhooks(connection, application or self.application)

    def deliveries(
        self,
        count: int = 1,
        *,
        overdue_s: float,
        application: UUID | None = None,
        status: str = "pending",
        step: int = 1,
        requeued_s_ago: float | None = None,
        set_aside: bool = False,
    ) -> list[UUID]:
        values = {
            "count": count,
            "overdue_s": overdue_s,
            "application": application or self.application,
            "status": status,
            "step": step,
            "requeued_s_ago": requeued_s_ago,
            "set_aside": set_aside,
        }
        return [made for (made,) in self.run(_DELIVERIES, values)]

    def events(
        self,
        count: int = 1,
        *,
        age_s: float,
        kind: str = "payment_intent.succeeded",
        taken_in: bool = False,
        requeued_s_ago: float | None = None,
    ) -> list[UUID]:
        """Insert events, each of its own intent."""
        values = {
            "count": count,
            "age_s": age_s,
            "application": self.application,
            "kind": kind,
            "taken_in": taken_in,
            "requeued_s_ago": requeued_s_ago,
        }
        return [made for (made,) in self.run(_EVENTS, values)]

    def requeued(self) -> list[DeliveryDue]:
        """Return what is in the outbox for webhooks.deliver, in its order."""
        rows = self.run("select key, payload from outbox where topic = 'webhooks.deliver' order by id")
        messages = [decode(payload.encode()) for _, payload in rows]
        due = [message for message in messages if isinstance(message, DeliveryDue)]
        assert [key for key, _ in rows] == [str(message.application_id) for message in due]
        return due

    def requeued_events(self) -> list[IntentEvent]:
        """Return what is in the outbox for payment_intents.events, in its order."""
        rows = self.run("select key, payload from outbox where topic = 'payment_intents.events' order by id")
        messages = [decode(payload.encode()) for _, payload in rows]
        events = [message for message in messages if isinstance(message, IntentEvent)]
        assert [key for key, _ in rows] == [str(message.intent_uuid) for message in events]
        return events

    def set_aside(self) -> list[UUID]:
        return [
            row[0]
            for row in self.run(
                "select id from webhook_deliveries where set_aside_at is not null order by id"
            )
        ]

    def run(self, statement: str, values: Any = ()) -> list[Any]:
        with self._database.cursor() as cursor:
            cursor.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []


@dataclass(frozen=True)
class Line:
    """Writes records to topics and commits offsets of their groups. The topics must exist."""

    settings: KafkaSettings

    def put(self, topic: Topic, *messages: AnyMessage | bytes, age_s: float = 0, partition: int = 0) -> None:
        """Produce records with a timestamp of so long ago."""
        producer = clients.producer(self.settings, "line")
        for message in messages:
            producer.produce(
                clients.topic_name(self.settings, topic.name),
                message if isinstance(message, bytes) else encode(message),
                partition=partition,
                timestamp=int((time() - age_s) * 1000),
            )
        assert producer.flush(30) == 0

    def commit(self, topic: Topic, offset: int, partition: int = 0) -> None:
        """Commit the offset for the group of the topic."""
        assert topic.group is not None
        place = TopicPartition(clients.topic_name(self.settings, topic.name), partition, offset)
        commit_offset(self.settings, topic.group, place)

    def committed(self, topic: Topic, partition: int = 0) -> int:
        assert topic.group is not None
        consumer = clients.consumer(self.settings, topic.group)
        place = TopicPartition(clients.topic_name(self.settings, topic.name), partition)
        (answer,) = consumer.committed([place], 30)
        consumer.close()
        return int(answer.offset)

    def lose_records(self, topic: Topic, before: int, partition: int = 0) -> None:
        """Delete the records before the offset, as retention does."""
        place = TopicPartition(clients.topic_name(self.settings, topic.name), partition, before)
        admin = clients.admin(self.settings, "line")
        for answer in admin.delete_records([place]).values():
            answer.result(30)

    def delete(self, topic: Topic) -> None:
        name = clients.topic_name(self.settings, topic.name)
        admin = clients.admin(self.settings, "line")
        admin.delete_topics([name], operation_timeout=30)[name].result(30)

    def exists(self, topic: Topic) -> bool:
        name = clients.topic_name(self.settings, topic.name)
        try:
            return name in clients.admin(self.settings, "line").list_topics(timeout=10).topics
        except KafkaException:
            return True


def ids(messages: Sequence[DeliveryDue | IntentEvent]) -> list[UUID]:
    """Return the ids in order of time; messages come in any order."""
    return sorted(message.id for message in messages)

"""Writes dead letters as a consumer would, and reads what was republished to their origins."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from confluent_kafka import TopicPartition

from shared.domain.audit_log import Actor
from shared.domain.dead_letters.queries import (
    DeadLetterPage,
    DeadLetterView,
    get_dead_letter,
    list_dead_letters,
)
from shared.domain.dead_letters.republish import replay_dead_letter
from shared.domain.dead_letters.topic_reader import open_topic_reader
from shared.domain.messages import DeadLetter, encode
from shared.domain.topics import (
    CHECKOUT_VERIFY,
    DEAD_LETTERS,
    WEBHOOKS_DEAD,
    WEBHOOKS_DELIVER,
    WEBHOOKS_RESEND,
)
from shared.platform.database.pool import Database
from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after
from shared.platform.kafka.records import Record
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from tests.waiting import eventually

AMAL = Actor("amal@mizan.example")
TOPICS = (WEBHOOKS_DELIVER, WEBHOOKS_RESEND, CHECKOUT_VERIFY, WEBHOOKS_DEAD, DEAD_LETTERS)
BEGINNING = datetime(2026, 3, 1, 12, tzinfo=UTC)


class DeadLetterTopic:
    def __init__(self, database: Database, kafka: KafkaSettings) -> None:
        self.database = database
        self.kafka = kafka
        self.added = 0

    def letter(self, value: bytes | None = b"{}", **changes: Any) -> DeadLetter:
        """Return a dead letter with its own offset and time."""
        self.added += 1
        given: dict[str, Any] = {
            "topic": self.topic_name(WEBHOOKS_DELIVER),
            "partition": 1,
            "offset": self.added,
            "group": f"{self.kafka.topic_prefix}webhooks.deliver",
            "reason": "failed 3 times: KeyError('x')",
            "at": BEGINNING + timedelta(seconds=self.added),
            "key": b"application",
            "value": value,
        }
        return DeadLetter(**(given | changes))

    def add(self, *letters: DeadLetter) -> None:
        self.put(DEAD_LETTERS, [(letter.topic.encode(), encode(letter)) for letter in letters])

    def add_many(self, count: int, **changes: Any) -> None:
        self.add(*(self.letter(b'{"number": %d}' % number, **changes) for number in range(count)))

    def put(self, topic: Topic, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
        producer = ConfirmingProducer(self.kafka, "test", message_max_bytes=4 * 1024 * 1024)
        producer.send(
            [OutgoingRecord(topic.name, key, value) for key, value in records], on_wait=raise_after(30)
        )
        producer.close()

    def records(self, topic: Topic = WEBHOOKS_DELIVER) -> list[Record]:
        """Return all records of the topic, partition by partition."""
        found: list[Record] = []
        for partition in range(topic.partitions):
            with open_topic_reader(self.kafka, topic, partition) as reader:
                found.extend(reader.read_from(0, reader.end_offset, 100_000))
        return found

    def numbers(self) -> list[int]:
        """Return the numbers of the dead letters of `add_many` that were republished; one key keeps them in order."""
        return [int((record.value or b"").split()[1].rstrip(b"}")) for record in self.records()]

    def forget_until(self, topic: Topic, partition: int, offset: int) -> None:
        """Delete the records before the offset, as retention does."""
        place = TopicPartition(self.topic_name(topic), partition, offset)
        admin = clients.admin(self.kafka, "test")  # it must outlive the request
        (answer,) = admin.delete_records([place]).values()
        answer.result(30)

    def wait_for_kafka(self) -> None:
        """Wait until a restarted broker leads its partitions again."""

        def leads() -> bool:
            try:
                return bool(self.records(DEAD_LETTERS)) and self.records() is not None
            except KafkaUnavailableError:
                return False

        eventually(leads, within=120)

    def topic_name(self, topic: Topic) -> str:
        return clients.topic_name(self.kafka, topic.name)

    def page(self, before: int | None = None, most: int = 50, origin: str | None = None) -> DeadLetterPage:
        with self.database.transaction() as connection:
            return list_dead_letters(connection, self.kafka, before, most, origin)

    def look(self, offset: int = 0) -> DeadLetterView:
        with self.database.transaction() as connection:
            return get_dead_letter(connection, self.kafka, offset)

    def replay(self, letter: DeadLetterView, actor: Actor = AMAL) -> bool:
        with self.database.transaction() as connection:
            return replay_dead_letter(connection, self.kafka, letter, actor)

    def noted(self) -> list[UUID]:
        """Return the ids of the dead letters that are recorded as replayed."""
        return [
            row[0] for row in self.rows("select dead_letter_id from dead_letter_replays order by replayed_at")
        ]

    def actions(self) -> list[tuple[str, dict[str, Any]]]:
        return self.rows("select action, details from audit_log order by id")

    def rows(self, statement: str) -> list[Any]:
        with self.database.cursor() as cursor:
            return cursor.execute(statement.encode()).fetchall()

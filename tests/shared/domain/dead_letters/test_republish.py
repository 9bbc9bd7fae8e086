"""A dead letter is republished to its origin unchanged, once, and only if the topic has a consumer."""

from dataclasses import replace
from random import randbytes
from threading import Barrier, Thread

import pytest

from shared.domain.audit_log import Action
from shared.domain.dead_letters import republish
from shared.domain.dead_letters.queries import DeadLetterNotFoundError, StoredDeadLetter, read_dead_letter
from shared.domain.dead_letters.republish import (
    DeadLetterRecordLostError,
    OriginNotConsumedError,
    RecordRejectedError,
    replay_dead_letter,
)
from shared.domain.topics import DEAD_LETTERS, WEBHOOKS_DEAD, WEBHOOKS_DELIVER, WEBHOOKS_RESEND
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings
from stack.engines import Engines
from tests.shared.domain.dead_letters.dead_letter_topic import AMAL, DeadLetterTopic
from tests.topics import delete_topic

TOO_LARGE = "failed (its value of {} bytes is too large for this topic; see its origin)"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"application", b'{"a":  1}'),
        (b"\xff\x00", b"\xff\xfe\x00\x1b"),
        (None, b"without a key"),
        (b"", b""),
        (b"tombstone", None),
        (b"large", b"\x01" * (1000 * 1024)),
    ],
    ids=["json", "bytes", "no key", "empty", "no value", "large"],
)
def test_record_is_republished_byte_for_byte(
    dead_letter_topic: DeadLetterTopic, key: bytes | None, value: bytes | None
) -> None:
    dead_letter_topic.add(dead_letter_topic.letter(value, key=key))
    assert dead_letter_topic.replay(dead_letter_topic.look())
    (back,) = dead_letter_topic.records()
    assert (back.key, back.value) == (key, value)


def test_replay_is_recorded_with_its_operator(dead_letter_topic: DeadLetterTopic) -> None:
    """With the dead letter, and in the audit log of operators."""
    dead_letter_topic.add_many(1)
    letter = dead_letter_topic.look()
    dead_letter_topic.replay(letter)
    replayed = dead_letter_topic.look().replayed
    assert replayed is not None
    assert (replayed.actor, replayed.run_id) == (AMAL.name, None)
    assert dead_letter_topic.actions() == [
        (
            Action.DEAD_LETTER_REPLAYED,
            {"letter": str(letter.id), "topic": "webhooks.deliver", "partition": 1, "offset": 1},
        )
    ]


def test_second_replay_publishes_nothing(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(1)
    letter = dead_letter_topic.look()
    assert [dead_letter_topic.replay(letter) for _ in range(3)] == [True, False, False]
    assert len(dead_letter_topic.records()) == len(dead_letter_topic.actions()) == 1


def test_concurrent_replays_publish_once(dead_letter_topic: DeadLetterTopic) -> None:
    """Only one of them returns True."""
    dead_letter_topic.add_many(1)
    letter, answers, ready = dead_letter_topic.look(), list[bool](), Barrier(4)

    def click() -> None:
        ready.wait()
        answers.append(dead_letter_topic.replay(letter))

    threads = [Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False, False, False, True]
    assert len(dead_letter_topic.records()) == 1


@pytest.mark.parametrize(
    "topic", ["{}nowhere", "{}dead_letters", "{}webhooks.dead", "webhooks.deliver", "{}", "\x1b[2J"]
)
def test_nothing_is_republished_to_a_topic_without_a_consumer(
    dead_letter_topic: DeadLetterTopic, topic: str
) -> None:
    """Nor to the topic of another installation on the same brokers."""
    dead_letter_topic.add(dead_letter_topic.letter(topic=topic.format(dead_letter_topic.kafka.topic_prefix)))
    with pytest.raises(OriginNotConsumedError, match="no consumer reads") as refused:
        dead_letter_topic.replay(dead_letter_topic.look())
    assert str(refused.value).isprintable()
    assert not dead_letter_topic.noted()
    assert len(dead_letter_topic.records(DEAD_LETTERS)) == 1
    assert not dead_letter_topic.records(WEBHOOKS_DEAD)


def test_record_that_is_not_a_dead_letter_is_refused(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.put(DEAD_LETTERS, [(b"key", b"\xff")])
    with pytest.raises(OriginNotConsumedError):
        dead_letter_topic.replay(dead_letter_topic.look())
    assert len(dead_letter_topic.records(DEAD_LETTERS)) == 1


def test_replay_of_a_missing_dead_letter_is_refused(dead_letter_topic: DeadLetterTopic) -> None:
    """Retention deleted it since it was listed, or the topic was recreated and another one has its offset."""
    dead_letter_topic.add_many(2)
    first, second = dead_letter_topic.look(0), dead_letter_topic.look(1)
    dead_letter_topic.forget_until(DEAD_LETTERS, 0, 1)
    with pytest.raises(DeadLetterNotFoundError):
        dead_letter_topic.replay(first)
    with pytest.raises(DeadLetterNotFoundError):
        dead_letter_topic.replay(replace(first, offset=second.offset))
    assert not dead_letter_topic.records()


class TestValueTooLargeForADeadLetter:
    """The record is read from its origin, if it is still there."""

    def test_record_is_read_from_its_origin(self, dead_letter_topic: DeadLetterTopic) -> None:
        dead_letter_topic.put(WEBHOOKS_DELIVER, [(b"key", b"x" * 5_000)])
        (there,) = dead_letter_topic.records()
        self._add(dead_letter_topic, there.partition, there.offset, 5_000)
        assert dead_letter_topic.replay(dead_letter_topic.look())
        assert [(one.key, one.value) for one in dead_letter_topic.records()] == [(b"key", b"x" * 5_000)] * 2

    def test_record_deleted_by_retention_is_lost(self, dead_letter_topic: DeadLetterTopic) -> None:
        dead_letter_topic.put(WEBHOOKS_DELIVER, [(b"key", b"x" * 5_000)])
        (there,) = dead_letter_topic.records()
        self._add(dead_letter_topic, there.partition, there.offset, 5_000)
        dead_letter_topic.forget_until(WEBHOOKS_DELIVER, there.partition, there.offset + 1)
        self._is_lost(dead_letter_topic)

    @pytest.mark.parametrize(
        ("partition", "offset", "size", "key"),
        [
            pytest.param(99, 0, 5_000, b"key", id="no such partition"),
            pytest.param(-1, 0, 5_000, b"key", id="nonsense"),
            pytest.param(None, 2**70, 5_000, b"key", id="no such offset"),
            pytest.param(None, 0, 4_999, b"key", id="another size"),
            pytest.param(None, 0, 5_000, b"other", id="another key"),
        ],
    )
    def test_record_at_another_position_or_with_another_content_is_lost(
        self, dead_letter_topic: DeadLetterTopic, partition: int | None, offset: int, size: int, key: bytes
    ) -> None:
        dead_letter_topic.put(WEBHOOKS_DELIVER, [(b"key", b"x" * 5_000)])
        (there,) = dead_letter_topic.records()
        self._add(dead_letter_topic, there.partition if partition is None else partition, offset, size, key)
        self._is_lost(dead_letter_topic)

    def _add(
        self,
        dead_letter_topic: DeadLetterTopic,
        partition: int,
        offset: int,
        size: int,
        key: bytes | None = None,
    ) -> None:
        reason = TOO_LARGE.format(size)
        dead_letter_topic.add(
            dead_letter_topic.letter(None, partition=partition, offset=offset, reason=reason, key=key)
        )

    def _is_lost(self, dead_letter_topic: DeadLetterTopic) -> None:
        before = len(dead_letter_topic.records())
        with pytest.raises(DeadLetterRecordLostError, match="the record is lost"):
            dead_letter_topic.replay(dead_letter_topic.look())
        assert len(dead_letter_topic.records()) == before
        assert not dead_letter_topic.noted()


def test_record_that_its_origin_rejects_is_not_recorded_as_replayed(
    dead_letter_topic: DeadLetterTopic,
) -> None:
    """It is larger than that topic allows now."""
    dead_letter_topic.add(dead_letter_topic.letter(randbytes(1100 * 1024)))
    with pytest.raises(RecordRejectedError, match="rejects the record for webhooks"):
        dead_letter_topic.replay(dead_letter_topic.look())
    assert not dead_letter_topic.noted()


def test_missing_origin_topic_raises_kafka_unavailable(dead_letter_topic: DeadLetterTopic) -> None:
    """The scheduler recreates it later, so the operator may retry."""
    name = dead_letter_topic.topic_name(WEBHOOKS_RESEND)
    dead_letter_topic.add_many(1, topic=name)
    delete_topic(dead_letter_topic.kafka, WEBHOOKS_RESEND)
    with pytest.raises(KafkaUnavailableError):
        dead_letter_topic.replay(dead_letter_topic.look())
    assert not dead_letter_topic.noted()


@pytest.mark.kills
def test_nothing_is_recorded_if_kafka_fails_during_the_replay(
    dead_letter_topic: DeadLetterTopic, killable_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the caller commits its transaction; later the replay succeeds."""
    dead_letter_topic.add_many(1)
    letter = dead_letter_topic.look()

    def read_and_lose_kafka(settings: KafkaSettings, offset: int) -> StoredDeadLetter:
        found = read_dead_letter(settings, offset)
        killable_engines.kafka.kill()
        return found

    monkeypatch.setattr(republish, "read_dead_letter", read_and_lose_kafka)
    # The caller commits its transaction.
    with dead_letter_topic.database.transaction() as connection, pytest.raises(KafkaUnavailableError):
        replay_dead_letter(connection, dead_letter_topic.kafka, letter, AMAL)
    assert not dead_letter_topic.noted()
    assert not dead_letter_topic.actions()
    monkeypatch.undo()
    killable_engines.kafka.start()
    dead_letter_topic.wait_for_kafka()
    assert dead_letter_topic.replay(letter)
    assert len(dead_letter_topic.records()) >= 1

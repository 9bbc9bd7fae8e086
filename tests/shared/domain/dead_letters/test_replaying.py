"""A dead letter goes back to its origin as it was, once, and only where somebody will read it."""

from dataclasses import replace
from random import randbytes
from threading import Barrier, Thread

import pytest

from shared.domain.audit_log import Action
from shared.domain.dead_letters import republish
from shared.domain.dead_letters.queries import Found, LetterNotFoundError, find
from shared.domain.dead_letters.republish import (
    LetterLostError,
    OriginRefusedError,
    RecordRefusedError,
    replay,
)
from shared.domain.topics import DEAD_LETTERS, WEBHOOKS_DEAD, WEBHOOKS_DELIVER, WEBHOOKS_RESEND
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings
from stack.engines import Engines
from tests.shared.domain.dead_letters.graveyard import AMAL, Graveyard
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
def test_it_comes_back_byte_for_byte(graveyard: Graveyard, key: bytes | None, value: bytes | None) -> None:
    graveyard.bury(graveyard.letter(value, key=key))
    assert graveyard.replay(graveyard.look())
    (back,) = graveyard.records()
    assert (back.key, back.value) == (key, value)


def test_who_did_it_is_known(graveyard: Graveyard) -> None:
    """In the letter, and in the audit log of operators."""
    graveyard.bury_many(1)
    letter = graveyard.look()
    graveyard.replay(letter)
    replayed = graveyard.look().replayed
    assert replayed is not None
    assert (replayed.actor, replayed.run_id) == (AMAL.name, None)
    assert graveyard.actions() == [
        (
            Action.LETTER_REPLAYED,
            {"letter": str(letter.id), "topic": "webhooks.deliver", "partition": 1, "offset": 1},
        )
    ]


def test_a_second_click_replays_nothing(graveyard: Graveyard) -> None:
    graveyard.bury_many(1)
    letter = graveyard.look()
    assert [graveyard.replay(letter) for _ in range(3)] == [True, False, False]
    assert len(graveyard.records()) == len(graveyard.actions()) == 1


def test_two_operators_at_once(graveyard: Graveyard) -> None:
    """One replays, the other is told that it was done."""
    graveyard.bury_many(1)
    letter, answers, ready = graveyard.look(), list[bool](), Barrier(4)

    def click() -> None:
        ready.wait()
        answers.append(graveyard.replay(letter))

    threads = [Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False, False, False, True]
    assert len(graveyard.records()) == 1


@pytest.mark.parametrize(
    "topic", ["{}nowhere", "{}dead_letters", "{}webhooks.dead", "webhooks.deliver", "{}", "\x1b[2J"]
)
def test_where_nobody_reads_nothing_is_put(graveyard: Graveyard, topic: str) -> None:
    """Also not into the topic of another installation on the same servers."""
    graveyard.bury(graveyard.letter(topic=topic.format(graveyard.kafka.topic_prefix)))
    with pytest.raises(OriginRefusedError, match="nobody here consumes") as refused:
        graveyard.replay(graveyard.look())
    assert str(refused.value).isprintable()
    assert not graveyard.noted()
    assert len(graveyard.records(DEAD_LETTERS)) == 1
    assert not graveyard.records(WEBHOOKS_DEAD)


def test_what_is_no_letter_goes_nowhere(graveyard: Graveyard) -> None:
    graveyard.put(DEAD_LETTERS, [(b"key", b"\xff")])
    with pytest.raises(OriginRefusedError):
        graveyard.replay(graveyard.look())
    assert len(graveyard.records(DEAD_LETTERS)) == 1


def test_a_letter_that_is_gone(graveyard: Graveyard) -> None:
    """Since it was listed, retention has taken it; or the topic was made again, and another is in its place."""
    graveyard.bury_many(2)
    first, second = graveyard.look(0), graveyard.look(1)
    graveyard.forget_until(DEAD_LETTERS, 0, 1)
    with pytest.raises(LetterNotFoundError):
        graveyard.replay(first)
    with pytest.raises(LetterNotFoundError):
        graveyard.replay(replace(first, offset=second.offset))
    assert not graveyard.records()


class TestTooLargeForALetter:
    """Its record is taken from its origin, if it is still there."""

    def test_it_is(self, graveyard: Graveyard) -> None:
        graveyard.put(WEBHOOKS_DELIVER, [(b"key", b"x" * 5_000)])
        (there,) = graveyard.records()
        self._bury(graveyard, there.partition, there.offset, 5_000)
        assert graveyard.replay(graveyard.look())
        assert [(one.key, one.value) for one in graveyard.records()] == [(b"key", b"x" * 5_000)] * 2

    def test_retention_has_taken_it(self, graveyard: Graveyard) -> None:
        graveyard.put(WEBHOOKS_DELIVER, [(b"key", b"x" * 5_000)])
        (there,) = graveyard.records()
        self._bury(graveyard, there.partition, there.offset, 5_000)
        graveyard.forget_until(WEBHOOKS_DELIVER, there.partition, there.offset + 1)
        self._is_lost(graveyard)

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
    def test_another_has_its_place(
        self, graveyard: Graveyard, partition: int | None, offset: int, size: int, key: bytes
    ) -> None:
        graveyard.put(WEBHOOKS_DELIVER, [(b"key", b"x" * 5_000)])
        (there,) = graveyard.records()
        self._bury(graveyard, there.partition if partition is None else partition, offset, size, key)
        self._is_lost(graveyard)

    def _bury(
        self, graveyard: Graveyard, partition: int, offset: int, size: int, key: bytes | None = None
    ) -> None:
        reason = TOO_LARGE.format(size)
        graveyard.bury(graveyard.letter(None, partition=partition, offset=offset, reason=reason, key=key))

    def _is_lost(self, graveyard: Graveyard) -> None:
        before = len(graveyard.records())
        with pytest.raises(LetterLostError, match="the record is lost"):
            graveyard.replay(graveyard.look())
        assert len(graveyard.records()) == before
        assert not graveyard.noted()


def test_what_its_origin_does_not_take(graveyard: Graveyard) -> None:
    """Larger than that topic allows today."""
    graveyard.bury(graveyard.letter(randbytes(1100 * 1024)))
    with pytest.raises(RecordRefusedError, match="does not take the record back into webhooks"):
        graveyard.replay(graveyard.look())
    assert not graveyard.noted()


def test_an_origin_that_is_missing(graveyard: Graveyard) -> None:
    """Lost, until the scheduler has made it again: not now, says the answer."""
    name = graveyard.topic_name(WEBHOOKS_RESEND)
    graveyard.bury_many(1, topic=name)
    delete_topic(graveyard.kafka, WEBHOOKS_RESEND)
    with pytest.raises(KafkaUnavailableError):
        graveyard.replay(graveyard.look())
    assert not graveyard.noted()


@pytest.mark.kills
def test_kafka_goes_away(
    graveyard: Graveyard, killable_engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the letter was read: nothing is written, even where the caller goes on; later it works."""
    graveyard.bury_many(1)
    letter = graveyard.look()

    def find_and_lose_kafka(settings: KafkaSettings, offset: int) -> Found:
        found = find(settings, offset)
        killable_engines.kafka.kill()
        return found

    monkeypatch.setattr(republish, "find", find_and_lose_kafka)
    # The transaction of the caller ends well.
    with graveyard.database.transaction() as connection, pytest.raises(KafkaUnavailableError):
        replay(connection, graveyard.kafka, letter, AMAL)
    assert not graveyard.noted()
    assert not graveyard.actions()
    monkeypatch.undo()
    killable_engines.kafka.start()
    graveyard.wait_for_kafka()
    assert graveyard.replay(letter)
    assert len(graveyard.records()) >= 1

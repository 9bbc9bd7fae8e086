"""Dismissed dead letters leave the open list and bulk replays, stay findable, and can be replayed."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.domain.attempts.notes import InvalidNoteError
from shared.domain.audit_log import Actor
from shared.domain.dead_letters.dismissals import dismiss_dead_letter
from shared.domain.dead_letters.queries import DeadLetterNotFoundError, DeadLetterView, list_dead_letters
from shared.domain.dead_letters.republish import count_replayable
from tests.shared.domain.dead_letters.dead_letter_topic import AMAL, DeadLetterTopic

REASON = "the customer has paid in cash"


def dismiss(
    topic: DeadLetterTopic, letter: DeadLetterView, reason: str = REASON, actor: Actor = AMAL
) -> bool:
    with topic.database.transaction() as connection:
        return dismiss_dead_letter(connection, topic.kafka, letter, reason, actor)


def listed(topic: DeadLetterTopic, limit: int = 50, *, is_dismissed: bool) -> list[int]:
    with topic.database.transaction() as connection:
        page = list_dead_letters(connection, topic.kafka, None, limit, None, is_dismissed=is_dismissed)
    return [letter.offset for letter in page.dead_letters]


def test_dismissed_dead_letter_is_in_its_own_list(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(5)
    for offset in (3, 4):
        assert dismiss(dead_letter_topic, dead_letter_topic.look(offset))
    assert listed(dead_letter_topic, is_dismissed=False) == [2, 1, 0]
    assert listed(dead_letter_topic, 2, is_dismissed=False) == [2, 1], "a page is filled"
    assert listed(dead_letter_topic, is_dismissed=True) == [4, 3]
    found = dead_letter_topic.look(3)
    assert found.dismissed is not None
    assert (found.dismissed.actor, found.dismissed.reason) == (AMAL.name, REASON)
    with dead_letter_topic.database.transaction() as connection:
        assert count_replayable(connection, dead_letter_topic.kafka, None).count == 3


def test_dismissal_is_in_the_audit_log(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(1)
    letter = dead_letter_topic.look()
    dismiss(dead_letter_topic, letter)
    details = {
        "letter": str(letter.id),
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.origin_offset,
        "reason": REASON,
    }
    assert dead_letter_topic.actions() == [("letter_dismissed", details)]


def test_second_dismissal_changes_nothing(dead_letter_topic: DeadLetterTopic) -> None:
    """Also at the same moment."""
    dead_letter_topic.add_many(1)
    letter = dead_letter_topic.look()
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda n: dismiss(dead_letter_topic, letter, f"reason number {n}"), range(4)))
    assert sorted(done) == [False, False, False, True]
    assert len(dead_letter_topic.actions()) == 1
    (reason,) = dead_letter_topic.rows("select reason from dead_letter_dismissals")
    assert reason == (f"reason number {done.index(True)}",)


def test_dismissed_dead_letter_can_be_replayed_and_a_replayed_one_dismissed(
    dead_letter_topic: DeadLetterTopic,
) -> None:
    dead_letter_topic.add_many(3)
    first, second, third = (dead_letter_topic.look(offset) for offset in range(3))
    dismiss(dead_letter_topic, first)
    assert dead_letter_topic.replay(first)
    assert dead_letter_topic.replay(second)
    assert dismiss(dead_letter_topic, second)
    with ThreadPoolExecutor(2) as pool:
        both = pool.submit(dismiss, dead_letter_topic, third), pool.submit(dead_letter_topic.replay, third)
        assert [one.result() for one in both] == [True, True]
    assert dead_letter_topic.numbers() == [0, 1, 2]
    assert listed(dead_letter_topic, is_dismissed=False) == []


@pytest.mark.parametrize(
    "reason", ["", "    ", "four", "\u200b\u200e\u2066\u2069\u200b", "x" * 501, "\x00\x00\x00\x00\x00\x00"]
)
def test_reason_is_required_and_bounded(dead_letter_topic: DeadLetterTopic, reason: str) -> None:
    dead_letter_topic.add_many(1)
    with pytest.raises(InvalidNoteError):
        dismiss(dead_letter_topic, dead_letter_topic.look(), reason)
    assert dead_letter_topic.rows("select from dead_letter_dismissals") == []


def test_dismissal_is_of_the_dead_letter_and_not_of_its_offset(dead_letter_topic: DeadLetterTopic) -> None:
    """In a recreated topic another dead letter has the offset that the operator saw."""
    dead_letter_topic.add_many(2)
    seen, other = dead_letter_topic.look(0), dead_letter_topic.look(1)
    moved = DeadLetterView(
        **{name: getattr(seen, name) for name in seen.__slots__} | {"offset": other.offset}
    )
    with pytest.raises(DeadLetterNotFoundError):
        dismiss(dead_letter_topic, moved)
    assert listed(dead_letter_topic, is_dismissed=False) == [1, 0]

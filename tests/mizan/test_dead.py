"""`mizan dead`: dead letters and exhausted deliveries are listed, shown and replayed, with exit codes for scripts."""

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from mizan.command_context import acting_operator
from shared.domain.dead_letters import topic_reader
from shared.domain.dead_letters.replays import latest_replay_run, start_replay_run
from shared.domain.kafka_principals import CLI
from shared.domain.messages import DeliveryExhausted, encode
from shared.domain.topics import WEBHOOKS_DEAD
from shared.platform.database.pool import Database
from shared.platform.settings import KafkaSettings
from tests.constants import UNKNOWN_ID
from tests.dashboard.delivery_rows import Deliveries
from tests.mizan.conftest import Mizan
from tests.shared.domain.dead_letters.dead_letter_topic import AMAL, BEGINNING, DeadLetterTopic
from tests.topics import as_principal, kafka_variables


@pytest.fixture
def dead_letter_topic(database: Database, all_topics: KafkaSettings) -> DeadLetterTopic:
    return DeadLetterTopic(database, all_topics)


@pytest.fixture
def dead(run: Mizan, kafka_settings: KafkaSettings) -> Mizan:
    """Run `mizan dead …`, which needs Kafka."""
    found = {
        **kafka_variables(as_principal(kafka_settings, CLI)),
    }
    return lambda *words, **more: run("dead", *words, **{**found, **more})


@pytest.fixture
def failed(dead_letter_topic: DeadLetterTopic, application_id: UUID) -> UUID:
    """Return an exhausted delivery."""
    deliveries = Deliveries(dead_letter_topic.database, application_id)
    deliveries.run("update applications set webhook_url = 'https://shop.example.ly/hooks?token=hush'")
    made = deliveries.make("failed", 500, tries=9)
    deliveries.add_try(made, 9, 500, answer=b"no\x1b[2J")
    record = encode(DeliveryExhausted(made, application_id, BEGINNING))
    dead_letter_topic.put(WEBHOOKS_DEAD, [(str(made).encode(), record)])
    return made


def parsed(answer: Any) -> Any:
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


def rows(answer: Any) -> Any:
    (listed,) = parsed(answer).values()
    return listed


def test_list_and_replay_say_so_if_nothing_is_dead(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    assert dead("list").stdout == "There are no dead letters.\n"
    assert dead("list", "--kind", "deliveries").stdout == "There are no exhausted deliveries.\n"
    assert rows(dead("list", "--json")) == rows(dead("list", "--kind", "deliveries", "--json")) == []
    answer = dead("replay", "--all")
    assert (answer.exit_code, answer.stdout) == (0, "There is nothing to replay.\n")


def test_dead_letters_are_listed_newest_first(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    """Up to the limit, and of one origin on request."""
    dead_letter_topic.add_many(3)
    dead_letter_topic.add_many(1, topic=f"{dead_letter_topic.kafka.topic_prefix}checkout.verify")
    listed = rows(dead("list", "--json"))
    assert [row["offset"] for row in listed] == [3, 2, 1, 0]
    assert listed[1]["letter_id"] == str(dead_letter_topic.look(2).id)
    assert (listed[1]["topic"], listed[1]["replayed_at"]) == ("webhooks.deliver", None)
    assert [row["offset"] for row in rows(dead("list", "--limit", "2", "--json"))] == [3, 2]
    found = rows(dead("list", "--origin", "webhooks.deliver", "--limit", "2", "--json"))
    assert [row["offset"] for row in found] == [2, 1]
    assert "checkout.verify" in dead("list").stdout.splitlines()[1]


def test_exhausted_deliveries_are_listed(dead: Mizan, failed: UUID) -> None:
    (row,) = rows(dead("list", "--kind", "deliveries", "--json"))
    assert (row["delivery_id"], row["status"], row["last_status_code"]) == (str(failed), "failed", 500)
    assert dead("list", "--kind", "deliveries", "--origin", "x").exit_code == 2


def test_dead_letter_is_shown_by_id_and_by_offset(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    """Without secrets and without control characters."""
    dead_letter_topic.add(
        dead_letter_topic.letter(b'{"token": "hushhush", "x": "\\u001b[2J"}', reason="bad \x1b]0;x\x07")
    )
    letter = dead_letter_topic.look()
    by_id, by_offset = dead("show", str(letter.id)), dead("show", "0")
    assert by_id.stdout == by_offset.stdout
    assert "[redacted]" in by_id.stdout
    for answer in (by_id, dead("list"), dead("show", "0", "--json")):
        assert "hushhush" not in answer.stdout
        assert "\x1b" not in answer.stdout
    shown = parsed(dead("show", str(letter.id), "--json"))
    assert (shown["letter_id"], shown["key"], shown["size"]) == (str(letter.id), "application", 39)


def test_exhausted_delivery_is_shown(dead: Mizan, failed: UUID) -> None:
    shown = parsed(dead("show", str(failed), "--json"))
    assert (shown["url"], shown["last_answer"]) == ("https://shop.example.ly/hooks", "no␛[2J")
    assert "no␛[2J" in dead("show", str(failed)).stdout


@pytest.mark.parametrize("command", ["show", "replay"])
def test_unknown_id_is_one_clear_line(dead: Mizan, dead_letter_topic: DeadLetterTopic, command: str) -> None:
    for name, told in (
        ("nonsense", "ID must be"),
        (UNKNOWN_ID, "ID must be"),
        ("9", "no dead letter at offset 9"),
        ("b877324c-ef27-569d-8dcb-4058d3939408", "no dead letter b877324c"),
        ("01a1e13c-ca15-73d2-8a85-a31aa95bb1a2", "no delivery 01a1e13c"),
    ):
        answer = dead(command, name)
        assert answer.exit_code == 1, name
        assert told in answer.stderr
        assert len(answer.stderr.splitlines()) == 1


def test_dead_letters_are_replayed(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    """One that is refused stops no other, and the exit code is 1. Replaying again does nothing."""
    dead_letter_topic.add_many(1)
    dead_letter_topic.add(dead_letter_topic.letter(topic="nowhere"))
    dead_letter_topic.add_many(1)
    answer = dead("replay", str(dead_letter_topic.look(0).id), "1", "2")
    assert answer.exit_code == 1
    assert answer.stdout.count("republished to webhooks.deliver") == 2
    assert answer.stderr.startswith("Error: 1: no consumer reads nowhere")
    again = dead("replay", "0")
    assert (again.exit_code, again.stdout) == (0, "0: already replayed; nothing changed\n")
    assert len(dead_letter_topic.records()) == 2
    shown = parsed(dead("show", "0", "--json"))
    assert shown["replayed_by"] == acting_operator().name


def test_exhausted_delivery_is_resent(dead: Mizan, dead_letter_topic: DeadLetterTopic, failed: UUID) -> None:
    """It is in the audit log of its merchant."""
    assert dead("replay", str(failed)).exit_code == 0
    assert dead_letter_topic.rows("select key from outbox where topic = 'webhooks.resend'") == [
        (str(failed),)
    ]
    assert dead_letter_topic.actions() == [("delivery_resent", {"delivery": str(failed)})]


def test_all_dead_letters_are_replayed(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(12)
    answer = dead("replay", "--all", "--origin", "webhooks.deliver", "--yes")
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout == "12 of 12 dead letters were republished, 0 could not be: done\n"
    assert dead_letter_topic.numbers() == list(range(12))


def test_replay_all_asks_for_confirmation(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    """No answer counts as no."""
    dead_letter_topic.add_many(2)
    answer = dead("replay", "--all")
    assert answer.exit_code == 1
    assert "Republish 2 dead letters to their topics?" in answer.stdout
    assert not dead_letter_topic.records()


def test_dead_letter_that_cannot_be_republished_is_counted(
    dead: Mizan, dead_letter_topic: DeadLetterTopic
) -> None:
    reason = "failed (its value of 7 bytes is too large for this topic; see its origin)"
    dead_letter_topic.add(dead_letter_topic.letter(None, reason=reason))
    dead_letter_topic.add_many(1)
    answer = dead("replay", "--all", "--yes")
    assert answer.exit_code == 1
    assert answer.stdout.endswith("1 of 2 dead letters were republished, 1 could not be: done\n")


def test_replay_all_continues_a_running_replay(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    """Such as one started in the monitor, which is down now."""
    dead_letter_topic.add_many(3)
    with dead_letter_topic.database.transaction() as connection:
        start_replay_run(connection, dead_letter_topic.kafka, uuid4(), None, AMAL)
    answer = dead("replay", "--all", "--yes")
    assert answer.exit_code == 0
    assert f"{AMAL.name} is already replaying" in answer.stderr
    with dead_letter_topic.database.transaction() as connection:
        ended = latest_replay_run(connection)
    assert ended is not None
    assert (ended.outcome, ended.replayed) == ("done", 3)


@pytest.mark.parametrize("words", [(), ("--all", "1"), ("1", "--yes"), ("1", "--origin", "x")])
def test_conflicting_arguments_of_replay_are_a_usage_error(dead: Mizan, words: tuple[str, ...]) -> None:
    assert dead("replay", *words).exit_code == 2


@pytest.mark.parametrize("words", [("list",), ("show", "0"), ("replay", "0"), ("replay", "--all", "--yes")])
def test_unavailable_kafka_is_one_clear_line(
    dead: Mizan, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_reader, "_TIMEOUT_S", 0.5)
    answer = dead(*words, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:9")
    assert answer.exit_code == 1
    assert answer.stderr.startswith("Error: ")
    assert len(answer.stderr.splitlines()) == 1


def test_dismissed_dead_letters_are_listed_apart(dead: Mizan, dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(2)
    assert dead("dismiss", "0", "--reason", "no").exit_code == 1
    assert dead("dismiss", "0").exit_code == 2
    answer = dead("dismiss", "0", "99", "--reason", "was a test")
    assert answer.exit_code == 1
    assert answer.stdout == "0: dismissed\n"
    assert dead("dismiss", "0", "--reason", "another reason").stdout == "0: was dismissed before\n"
    assert [row["offset"] for row in rows(dead("list", "--json"))] == [1]
    assert [row["offset"] for row in rows(dead("list", "--dismissed", "--json"))] == [0]
    assert dead("list", "--dismissed", "--kind", "deliveries").exit_code == 2
    shown = parsed(dead("show", "0", "--json"))
    assert shown["dismissed_because"] == "was a test"
    assert shown["dismissed_by"]
    assert dead("replay", "--all", "--yes").exit_code == 0
    assert dead_letter_topic.numbers() == [1]

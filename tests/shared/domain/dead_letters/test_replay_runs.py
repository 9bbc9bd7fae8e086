"""Bulk replays: exactly the dead letters that were open at the start, each once, oldest first."""

from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.domain.audit_log import Action
from shared.domain.dead_letters import replays, republish
from shared.domain.dead_letters.queries import StoredDeadLetter
from shared.domain.dead_letters.replays import (
    IDLE_S,
    NothingToReplayError,
    ReplayInProgressError,
    ReplayRun,
    ReplayRunNotFoundError,
    get_replay_run,
    latest_replay_run,
    replay_batch,
    start_replay_run,
    stop_replay_run,
)
from shared.domain.dead_letters.republish import DeadLetterPublisher, OriginNotConsumedError, count_replayable
from shared.domain.topics import CHECKOUT_VERIFY, DEAD_LETTERS
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.producer import OutgoingRecord
from stack.engines import Engines
from tests.shared.domain.dead_letters.dead_letter_topic import AMAL, DeadLetterTopic
from tests.waiting import eventually

LOST = "failed (its value of 7 bytes is too large for this topic; see its origin)"


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "BATCH", 5)


def begin(
    dead_letter_topic: DeadLetterTopic, origin: str | None = None, run_id: UUID | None = None
) -> ReplayRun:
    with dead_letter_topic.database.transaction() as connection:
        return start_replay_run(connection, dead_letter_topic.kafka, run_id or uuid4(), origin, AMAL)


def work(dead_letter_topic: DeadLetterTopic) -> float:
    return replay_batch(dead_letter_topic.database, dead_letter_topic.kafka)


def now(dead_letter_topic: DeadLetterTopic, run: ReplayRun) -> ReplayRun:
    with dead_letter_topic.database.transaction() as connection:
        return get_replay_run(connection, run.id)


def finish(dead_letter_topic: DeadLetterTopic, run: ReplayRun) -> ReplayRun:
    eventually(lambda: work(dead_letter_topic) >= 0 and now(dead_letter_topic, run).outcome)
    return now(dead_letter_topic, run)


@pytest.mark.usefixtures("small_batches")
def test_all_open_dead_letters_are_replayed(dead_letter_topic: DeadLetterTopic) -> None:
    """None that was replayed before, none whose origin has no consumer, and none that came later."""
    dead_letter_topic.add_many(12)
    dead_letter_topic.replay(dead_letter_topic.look(3))
    dead_letter_topic.add(dead_letter_topic.letter(topic="nowhere"))
    dead_letter_topic.put(DEAD_LETTERS, [(None, b"\xff")])
    run = begin(dead_letter_topic)
    assert (run.found, run.replayed, run.outcome, run.actor) == (11, 0, None, AMAL.name)
    dead_letter_topic.add_many(3)
    ended = finish(dead_letter_topic, run)
    assert (ended.found, ended.replayed, ended.refused, ended.outcome) == (11, 11, 0, "done")
    assert ended.finished_at is not None
    assert dead_letter_topic.numbers() == [3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    replayed = dead_letter_topic.look(0).replayed
    assert replayed is not None
    assert (replayed.run_id, replayed.actor) == (run.id, AMAL.name)
    assert work(dead_letter_topic) == IDLE_S


def test_bulk_replay_is_in_the_audit_log_once(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(3)
    run = begin(dead_letter_topic)
    finish(dead_letter_topic, run)
    assert dead_letter_topic.actions() == [
        (Action.DEAD_LETTERS_REPLAYED, {"run": str(run.id), "topic": None, "count": 3})
    ]


def test_run_of_one_origin_replays_only_its_dead_letters(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(2)
    dead_letter_topic.add_many(3, topic=dead_letter_topic.topic_name(CHECKOUT_VERIFY))
    run = begin(dead_letter_topic, "checkout.verify")
    assert finish(dead_letter_topic, run).replayed == run.found == 3
    assert len(dead_letter_topic.records(CHECKOUT_VERIFY)) == 3
    assert not dead_letter_topic.records()
    with dead_letter_topic.database.transaction() as connection:
        assert count_replayable(connection, dead_letter_topic.kafka, None).count == 2


def test_repeated_request_returns_the_same_run(dead_letter_topic: DeadLetterTopic) -> None:
    """Also after it has ended."""
    dead_letter_topic.add_many(2)
    request_id = uuid4()
    first = begin(dead_letter_topic, run_id=request_id)
    assert begin(dead_letter_topic, run_id=request_id) == first
    ended = finish(dead_letter_topic, first)
    dead_letter_topic.add_many(1)
    assert begin(dead_letter_topic, run_id=request_id) == ended
    assert len(dead_letter_topic.actions()) == 1


def test_one_replay_run_at_a_time(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(2)
    run = begin(dead_letter_topic)
    with pytest.raises(ReplayInProgressError) as refused:
        begin(dead_letter_topic)
    assert refused.value.active_run_id == run.id
    finish(dead_letter_topic, run)
    with pytest.raises(NothingToReplayError):
        begin(dead_letter_topic)


def test_concurrent_requests_start_one_run(dead_letter_topic: DeadLetterTopic) -> None:
    """The others are refused."""
    dead_letter_topic.add_many(2)
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(begin(dead_letter_topic))
        except RefusedError as error:
            outcomes.append(error)

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([outcome for outcome in outcomes if isinstance(outcome, ReplayRun)]) == 1
    assert len([outcome for outcome in outcomes if isinstance(outcome, ReplayInProgressError)]) == 2


@pytest.mark.parametrize("origin", ["nowhere", "dead_letters", "webhooks.dead", ""])
def test_origin_without_a_consumer_is_refused(dead_letter_topic: DeadLetterTopic, origin: str) -> None:
    with pytest.raises(OriginNotConsumedError):
        begin(dead_letter_topic, origin)


def test_unknown_run_is_not_found(dead_letter_topic: DeadLetterTopic) -> None:
    with dead_letter_topic.database.transaction() as connection:
        assert latest_replay_run(connection) is None
        with pytest.raises(ReplayRunNotFoundError):
            get_replay_run(connection, uuid4())
        with pytest.raises(ReplayRunNotFoundError):
            stop_replay_run(connection, uuid4(), AMAL)


def test_dead_letter_that_cannot_be_replayed_is_counted_as_refused(
    dead_letter_topic: DeadLetterTopic,
) -> None:
    """It does not stop the others, and stays open for a later replay."""
    dead_letter_topic.add(dead_letter_topic.letter(None, reason=LOST))
    dead_letter_topic.add_many(2)
    ended = finish(dead_letter_topic, begin(dead_letter_topic))
    assert (ended.found, ended.replayed, ended.refused, ended.outcome) == (3, 2, 1, "done")
    assert dead_letter_topic.look(0).replayed is None


@pytest.mark.usefixtures("small_batches")
def test_stopped_run_replays_no_more(dead_letter_topic: DeadLetterTopic) -> None:
    """Replayed dead letters stay replayed; the rest can be replayed later."""
    dead_letter_topic.add_many(12)
    run = begin(dead_letter_topic)
    work(dead_letter_topic)
    with dead_letter_topic.database.transaction() as connection:
        assert stop_replay_run(connection, run.id, AMAL)
        assert not stop_replay_run(connection, run.id, AMAL)
    assert work(dead_letter_topic) == IDLE_S
    with dead_letter_topic.database.transaction() as connection:
        stopped = latest_replay_run(connection)
    assert stopped is not None
    assert (stopped.replayed, stopped.outcome) == (5, "stopped")
    assert dead_letter_topic.numbers() == list(range(5))
    assert dead_letter_topic.actions()[-1] == (Action.REPLAY_STOPPED, {"run": str(run.id), "count": 5})
    assert begin(dead_letter_topic).found == 7


def test_run_locked_by_another_worker_is_skipped(dead_letter_topic: DeadLetterTopic) -> None:
    """The worker does not wait for the lock."""
    dead_letter_topic.add_many(2)
    begin(dead_letter_topic)
    with dead_letter_topic.database.transaction() as connection:
        connection.execute("select from dead_letter_bulk_replays for update")
        assert work(dead_letter_topic) == IDLE_S
    assert not dead_letter_topic.records()


@pytest.mark.usefixtures("small_batches")
def test_two_workers_replay_each_dead_letter_once(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(30)
    run = begin(dead_letter_topic)
    threads = [Thread(target=finish, args=(dead_letter_topic, run)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dead_letter_topic.numbers() == list(range(30))


@pytest.mark.usefixtures("small_batches")
def test_dead_letter_replayed_by_an_operator_during_a_run_is_not_counted(
    dead_letter_topic: DeadLetterTopic,
) -> None:
    """It is published once."""
    dead_letter_topic.add_many(8)
    run = begin(dead_letter_topic)
    work(dead_letter_topic)
    dead_letter_topic.replay(dead_letter_topic.look(6))
    assert finish(dead_letter_topic, run).replayed == 7
    assert sorted(dead_letter_topic.numbers()) == list(range(8))


@pytest.mark.usefixtures("small_batches")
def test_run_continues_after_a_crash_in_the_middle_of_a_batch(
    dead_letter_topic: DeadLetterTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the end of the last complete batch, and no dead letter is left out."""
    dead_letter_topic.add_many(12)
    run = begin(dead_letter_topic)
    work(dead_letter_topic)
    _fail_at(monkeypatch, 3, RuntimeError("the process ends here"))
    with pytest.raises(RuntimeError):
        work(dead_letter_topic)
    monkeypatch.setattr(DeadLetterPublisher, "republish", _REPUBLISH)
    assert now(dead_letter_topic, run).replayed == 5
    assert finish(dead_letter_topic, run).replayed == 12
    assert sorted(set(dead_letter_topic.numbers())) == list(range(12))


@pytest.mark.usefixtures("small_batches")
def test_replays_before_a_kafka_outage_within_a_batch_are_recorded(
    dead_letter_topic: DeadLetterTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that they are not published twice."""
    dead_letter_topic.add_many(12)
    run = begin(dead_letter_topic)
    _fail_at(monkeypatch, 3, KafkaUnavailableError("away"))
    with pytest.raises(KafkaUnavailableError):
        work(dead_letter_topic)
    monkeypatch.setattr(DeadLetterPublisher, "republish", _REPUBLISH)
    assert now(dead_letter_topic, run).replayed == 2
    assert finish(dead_letter_topic, run).replayed == 12
    assert dead_letter_topic.numbers() == list(range(12))


@pytest.mark.kills
@pytest.mark.usefixtures("small_batches")
def test_run_continues_after_kafka_was_killed_between_batches(
    dead_letter_topic: DeadLetterTopic, killable_engines: Engines
) -> None:
    dead_letter_topic.add_many(12)
    run = begin(dead_letter_topic)
    work(dead_letter_topic)
    killable_engines.kafka.kill()
    with pytest.raises(KafkaUnavailableError):
        work(dead_letter_topic)
    killable_engines.kafka.start()
    dead_letter_topic.wait_for_kafka()
    assert finish(dead_letter_topic, run).replayed == 12
    assert dead_letter_topic.numbers() == list(range(12))


def test_batch_ends_at_its_time_limit(
    dead_letter_topic: DeadLetterTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow Kafka must not keep the database transaction open; what was replayed is recorded."""
    dead_letter_topic.add_many(4)
    run = begin(dead_letter_topic)
    monkeypatch.setattr(replays, "_BATCH_LIMIT_S", 0.0)
    work(dead_letter_topic)
    assert now(dead_letter_topic, run).replayed == 1
    assert finish(dead_letter_topic, run).replayed == 4
    assert dead_letter_topic.numbers() == list(range(4))


_REPUBLISH = republish.DeadLetterPublisher.republish


def _fail_at(monkeypatch: pytest.MonkeyPatch, number: int, error: Exception) -> None:
    """Raise the error instead of republishing the n-th dead letter from now on."""
    calls: list[Any] = []

    def republish_or_fail(self: DeadLetterPublisher, found: StoredDeadLetter) -> OutgoingRecord:
        calls.append(found)
        if len(calls) == number:
            raise error
        return _REPUBLISH(self, found)

    monkeypatch.setattr(DeadLetterPublisher, "republish", republish_or_fail)

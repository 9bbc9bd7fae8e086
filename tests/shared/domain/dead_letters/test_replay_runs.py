"""Many dead letters go back: exactly those that were open when it was asked for, each once, the oldest first."""

from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.domain.audit_log import Action
from shared.domain.dead_letters import replays, republish
from shared.domain.dead_letters.queries import Found
from shared.domain.dead_letters.replays import (
    IDLE_S,
    NothingToReplayError,
    ReplayingAlreadyError,
    Run,
    RunNotFoundError,
    begin_run,
    get_run,
    latest_run,
    stop_run,
    work_a_batch,
)
from shared.domain.dead_letters.republish import OriginRefusedError, Postman, look_for_open
from shared.domain.topics import CHECKOUT_VERIFY, DEAD_LETTERS
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.producer import OutgoingRecord
from stack.engines import Engines
from tests.shared.domain.dead_letters.graveyard import AMAL, Graveyard
from tests.waiting import eventually

LOST = "failed (its value of 7 bytes is too large for this topic; see its origin)"


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "BATCH", 5)


def begin(graveyard: Graveyard, origin: str | None = None, run_id: UUID | None = None) -> Run:
    with graveyard.database.transaction() as connection:
        return begin_run(connection, graveyard.kafka, run_id or uuid4(), origin, AMAL)


def work(graveyard: Graveyard) -> float:
    return work_a_batch(graveyard.database, graveyard.kafka)


def now(graveyard: Graveyard, run: Run) -> Run:
    with graveyard.database.transaction() as connection:
        return get_run(connection, run.id)


def finish(graveyard: Graveyard, run: Run) -> Run:
    eventually(lambda: work(graveyard) >= 0 and now(graveyard, run).outcome)
    return now(graveyard, run)


@pytest.mark.usefixtures("small_batches")
def test_all_that_is_open_goes_back(graveyard: Graveyard) -> None:
    """Not what was replayed before, nor what nobody reads, nor what came only later."""
    graveyard.bury_many(12)
    graveyard.replay(graveyard.look(3))
    graveyard.bury(graveyard.letter(topic="nowhere"))
    graveyard.put(DEAD_LETTERS, [(None, b"\xff")])
    run = begin(graveyard)
    assert (run.found, run.replayed, run.outcome, run.actor) == (11, 0, None, AMAL.name)
    graveyard.bury_many(3)
    ended = finish(graveyard, run)
    assert (ended.found, ended.replayed, ended.refused, ended.outcome) == (11, 11, 0, "done")
    assert ended.finished_at is not None
    assert graveyard.numbers() == [3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    replayed = graveyard.look(0).replayed
    assert replayed is not None
    assert (replayed.run_id, replayed.actor) == (run.id, AMAL.name)
    assert work(graveyard) == IDLE_S


def test_it_is_told_in_the_audit_log_once(graveyard: Graveyard) -> None:
    graveyard.bury_many(3)
    run = begin(graveyard)
    finish(graveyard, run)
    assert graveyard.actions() == [(Action.LETTERS_REPLAYED, {"run": str(run.id), "topic": None, "count": 3})]


def test_only_of_one_origin(graveyard: Graveyard) -> None:
    graveyard.bury_many(2)
    graveyard.bury_many(3, topic=graveyard.topic_name(CHECKOUT_VERIFY))
    run = begin(graveyard, "checkout.verify")
    assert finish(graveyard, run).replayed == run.found == 3
    assert len(graveyard.records(CHECKOUT_VERIFY)) == 3
    assert not graveyard.records()
    with graveyard.database.transaction() as connection:
        assert look_for_open(connection, graveyard.kafka, None).count == 2


def test_the_same_wish_twice(graveyard: Graveyard) -> None:
    """Also after it has ended: a second click leads to what the first one began."""
    graveyard.bury_many(2)
    wish = uuid4()
    first = begin(graveyard, run_id=wish)
    assert begin(graveyard, run_id=wish) == first
    ended = finish(graveyard, first)
    graveyard.bury_many(1)
    assert begin(graveyard, run_id=wish) == ended
    assert len(graveyard.actions()) == 1


def test_one_at_a_time(graveyard: Graveyard) -> None:
    graveyard.bury_many(2)
    run = begin(graveyard)
    with pytest.raises(ReplayingAlreadyError) as refused:
        begin(graveyard)
    assert refused.value.under_way == run.id
    finish(graveyard, run)
    with pytest.raises(NothingToReplayError):
        begin(graveyard)


def test_begun_by_two_at_once(graveyard: Graveyard) -> None:
    """One begins, the other is refused."""
    graveyard.bury_many(2)
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(begin(graveyard))
        except RefusedError as error:
            outcomes.append(error)

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([outcome for outcome in outcomes if isinstance(outcome, Run)]) == 1
    assert len([outcome for outcome in outcomes if isinstance(outcome, ReplayingAlreadyError)]) == 2


@pytest.mark.parametrize("origin", ["nowhere", "dead_letters", "webhooks.dead", ""])
def test_an_origin_that_nobody_reads(graveyard: Graveyard, origin: str) -> None:
    with pytest.raises(OriginRefusedError):
        begin(graveyard, origin)


def test_there_is_no_such_run(graveyard: Graveyard) -> None:
    with graveyard.database.transaction() as connection:
        assert latest_run(connection) is None
        with pytest.raises(RunNotFoundError):
            get_run(connection, uuid4())
        with pytest.raises(RunNotFoundError):
            stop_run(connection, uuid4(), AMAL)


def test_what_cannot_go_back_is_counted(graveyard: Graveyard) -> None:
    """And holds up no other; it stays open, for whoever asks again."""
    graveyard.bury(graveyard.letter(None, reason=LOST))
    graveyard.bury_many(2)
    ended = finish(graveyard, begin(graveyard))
    assert (ended.found, ended.replayed, ended.refused, ended.outcome) == (3, 2, 1, "done")
    assert graveyard.look(0).replayed is None


@pytest.mark.usefixtures("small_batches")
def test_it_is_stopped(graveyard: Graveyard) -> None:
    """What was put back stays so; the rest stays open."""
    graveyard.bury_many(12)
    run = begin(graveyard)
    work(graveyard)
    with graveyard.database.transaction() as connection:
        assert stop_run(connection, run.id, AMAL)
        assert not stop_run(connection, run.id, AMAL)
    assert work(graveyard) == IDLE_S
    with graveyard.database.transaction() as connection:
        stopped = latest_run(connection)
    assert stopped is not None
    assert (stopped.replayed, stopped.outcome) == (5, "stopped")
    assert graveyard.numbers() == list(range(5))
    assert graveyard.actions()[-1] == (Action.REPLAYING_STOPPED, {"run": str(run.id), "count": 5})
    assert begin(graveyard).found == 7


def test_while_one_worker_is_at_it_another_does_nothing(graveyard: Graveyard) -> None:
    """Nor does it wait for it."""
    graveyard.bury_many(2)
    begin(graveyard)
    with graveyard.database.transaction() as connection:
        connection.execute("select from dead_letter_bulk_replays for update")
        assert work(graveyard) == IDLE_S
    assert not graveyard.records()


@pytest.mark.usefixtures("small_batches")
def test_two_workers_share_nothing(graveyard: Graveyard) -> None:
    """Each letter goes once."""
    graveyard.bury_many(30)
    run = begin(graveyard)
    threads = [Thread(target=finish, args=(graveyard, run)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert graveyard.numbers() == list(range(30))


@pytest.mark.usefixtures("small_batches")
def test_an_operator_is_faster(graveyard: Graveyard) -> None:
    """With some letters of a run that is under way: they go once, and are not counted as the run's."""
    graveyard.bury_many(8)
    run = begin(graveyard)
    work(graveyard)
    graveyard.replay(graveyard.look(6))
    assert finish(graveyard, run).replayed == 7
    assert sorted(graveyard.numbers()) == list(range(8))


@pytest.mark.usefixtures("small_batches")
def test_a_crash_in_the_middle(graveyard: Graveyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a batch: it goes on where the last whole batch ended, and nothing is left out."""
    graveyard.bury_many(12)
    run = begin(graveyard)
    work(graveyard)
    _fail_at(monkeypatch, 3, RuntimeError("the process ends here"))
    with pytest.raises(RuntimeError):
        work(graveyard)
    monkeypatch.setattr(Postman, "bring_back", _BRING_BACK)
    assert now(graveyard, run).replayed == 5
    assert finish(graveyard, run).replayed == 12
    assert sorted(set(graveyard.numbers())) == list(range(12))


@pytest.mark.usefixtures("small_batches")
def test_kafka_away_within_a_batch(graveyard: Graveyard, monkeypatch: pytest.MonkeyPatch) -> None:
    """What went is written down, so that it does not go twice."""
    graveyard.bury_many(12)
    run = begin(graveyard)
    _fail_at(monkeypatch, 3, KafkaUnavailableError("away"))
    with pytest.raises(KafkaUnavailableError):
        work(graveyard)
    monkeypatch.setattr(Postman, "bring_back", _BRING_BACK)
    assert now(graveyard, run).replayed == 2
    assert finish(graveyard, run).replayed == 12
    assert graveyard.numbers() == list(range(12))


@pytest.mark.kills
@pytest.mark.usefixtures("small_batches")
def test_kafka_killed_between_batches(graveyard: Graveyard, killable_engines: Engines) -> None:
    graveyard.bury_many(12)
    run = begin(graveyard)
    work(graveyard)
    killable_engines.kafka.kill()
    with pytest.raises(KafkaUnavailableError):
        work(graveyard)
    killable_engines.kafka.start()
    graveyard.wait_for_kafka()
    assert finish(graveyard, run).replayed == 12
    assert graveyard.numbers() == list(range(12))


def test_a_slow_kafka_does_not_hold_up_the_database(
    graveyard: Graveyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch ends after a few seconds, with what it has done."""
    graveyard.bury_many(4)
    run = begin(graveyard)
    monkeypatch.setattr(replays, "_BATCH_LIMIT_S", 0.0)
    work(graveyard)
    assert now(graveyard, run).replayed == 1
    assert finish(graveyard, run).replayed == 4
    assert graveyard.numbers() == list(range(4))


_BRING_BACK = republish.Postman.bring_back


def _fail_at(monkeypatch: pytest.MonkeyPatch, number: int, error: Exception) -> None:
    """The so-manieth letter from now on, instead of going back."""
    calls: list[Any] = []

    def bring_back(self: Postman, found: Found) -> OutgoingRecord:
        calls.append(found)
        if len(calls) == number:
            raise error
        return _BRING_BACK(self, found)

    monkeypatch.setattr(Postman, "bring_back", bring_back)

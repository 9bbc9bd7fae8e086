"""Bulk replays of dead letters: started once in the monitor, processed by the scheduler with progress, and stopped."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.scheduler.job_runner import JobFailingError, JobRunner
from services.scheduler.jobs.bulk_replays import BulkReplays
from shared.domain.dead_letters import replays, topic_reader
from shared.domain.topics import CHECKOUT_VERIFY
from shared.platform.database.connections import DatabaseUnavailableError
from stack.engines import Engines
from tests.database_roles import open_as
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient
from tests.scheduler.running_jobs import running_jobs
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic
from tests.waiting import error_text, eventually

RUNS = "select replayed, refused, outcome from dead_letter_bulk_replays order by created_at"
StartReplays = Callable[[], JobRunner]


@pytest.fixture
def quick_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "BATCH_EVERY_S", 0.05)
    monkeypatch.setattr(replays, "IDLE_S", 0.05)


@pytest.fixture
def start_replays(pages: MonitorWorld, quick_batches: None) -> Iterator[StartReplays]:
    """Start the scheduler's job; it stops with the test."""
    with ExitStack() as stack:
        database = stack.enter_context(open_as("mizan_scheduler", pages.settings.database, "scheduler"))

        def start() -> JobRunner:
            (runner,) = stack.enter_context(running_jobs(BulkReplays(database, pages.settings.kafka)))
            return runner

        yield start


def begin(person: PageClient, origin: str = "") -> UUID:
    """Start a replay of all dead letters of an origin through the pages, and return the run."""
    person.open(f"/dead-letters/replay-all?origin={origin}")
    person.post("/dead-letters/replays")
    return run_of(person)


def run_of(person: PageClient) -> UUID:
    return UUID(person.response.url.rpartition("/")[2])


def test_bulk_replay_replays_all_dead_letters_and_shows_progress(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient, start_replays: StartReplays
) -> None:
    dead_letter_topic.add_many(130)
    operator.open("/dead-letters/replay-all")
    assert "130 dead letters are not replayed yet" in operator.text
    run = begin(operator)
    assert "0 of 130" in operator.text
    assert "In progress" in operator.text
    start_replays()
    path = f"/dead-letters/replays/{run}"
    eventually(lambda: "data-final" in operator.open(path, **{"X-Part": "run"}).text)
    part = operator.response.text
    assert "130 of 130" in part
    assert "<html" not in part
    assert dead_letter_topic.numbers() == list(range(130))
    assert "Done" in operator.open(path).text
    operator.open("/dead-letters/replay-all")
    assert "There are no dead letters left to replay" in operator.text
    assert pages.audit() == ["signed_in", "letters_replayed"]


def test_bulk_replay_of_one_origin_replays_only_its_dead_letters(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient, start_replays: StartReplays
) -> None:
    dead_letter_topic.add(
        dead_letter_topic.letter(),
        dead_letter_topic.letter(topic=dead_letter_topic.topic_name(CHECKOUT_VERIFY)),
    )
    start_replays()
    begin(operator, "checkout.verify")
    eventually(lambda: pages.rows(RUNS) == [(1, 0, "done")])
    assert len(dead_letter_topic.records(CHECKOUT_VERIFY)) == 1
    assert dead_letter_topic.records() == []


def test_submitting_the_form_twice_starts_one_bulk_replay(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(3)
    form = operator.open("/dead-letters/replay-all")
    runs = []
    for _ in range(2):
        operator.response = form
        operator.post("/dead-letters/replays")
        runs.append(run_of(operator))
    assert runs[0] == runs[1]
    assert pages.audit().count("letters_replayed") == 1


def test_concurrent_operators_start_one_bulk_replay(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic
) -> None:
    """The others are redirected to the run of the first."""
    dead_letter_topic.add_many(3)
    people = [pages.person() for _ in range(3)]
    for person in people:
        person.open("/dead-letters/replay-all")
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda person: person.post("/dead-letters/replays"), people))
    assert len({run_of(person) for person in people}) == 1
    assert sum("A replay is already running" in person.text for person in people) == 2
    assert pages.audit().count("letters_replayed") == 1


def test_bulk_replay_is_stopped_once(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(3)
    run = begin(operator)
    form = operator.response
    for said in ("Stopped. Records that were already replayed stay replayed.", "It had already ended."):
        operator.response = form
        operator.post(f"/dead-letters/replays/{run}/stop")
        assert said in operator.text
    assert pages.rows(RUNS) == [(0, 0, "stopped")]
    assert pages.audit().count("replaying_stopped") == 1


def test_bulk_replay_without_dead_letters_says_so(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    operator.open("/dead-letters")
    operator.post("/dead-letters/replays", run=str(uuid4()))
    assert "There are no dead letters left to replay" in operator.text
    assert pages.rows(RUNS) == []


def test_bulk_replay_with_invalid_fields_is_422(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(1)
    for fields in ({"run": "x"}, {"run": ""}, {"origin": "no.such"}, {"origin": "dead_letters"}):
        operator.open("/dead-letters/replay-all")
        assert operator.post("/dead-letters/replays", **fields).status_code == 422, fields
    assert pages.rows(RUNS) == []


def test_bulk_replay_needs_a_session_and_a_csrf_token(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(1)
    guest = pages.person(is_operator=False)
    assert guest.post("/dead-letters/replays", run=str(uuid4())).status_code in (400, 401)
    operator.open("/dead-letters/replay-all")
    assert operator.post("/dead-letters/replays", csrf_token="x").status_code == 400
    assert pages.rows(RUNS) == []


def test_unknown_bulk_replay_is_404(dead_letter_topic: DeadLetterTopic, operator: PageClient) -> None:
    path = f"/dead-letters/replays/{uuid4()}"
    assert operator.open(path).status_code == 404
    operator.open("/account")
    assert operator.post(f"{path}/stop").status_code == 404


def test_two_schedulers_replay_each_dead_letter_once(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient, start_replays: StartReplays
) -> None:
    dead_letter_topic.add_many(250)
    begin(operator)
    start_replays()
    start_replays()
    eventually(lambda: pages.rows(RUNS) == [(250, 0, "done")])
    assert dead_letter_topic.numbers() == list(range(250))


def test_bulk_replay_waits_while_kafka_is_unavailable(
    pages: MonitorWorld,
    dead_letter_topic: DeadLetterTopic,
    operator: PageClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dead_letter_topic.add_many(5)
    begin(operator)
    monkeypatch.setattr(topic_reader, "_TIMEOUT_S", 0.2)
    nowhere = replace(pages.settings.kafka, bootstrap_servers="127.0.0.1:9")
    with running_jobs(BulkReplays(pages.database, nowhere)) as (runner,):
        eventually(lambda: error_text(runner.check, JobFailingError))
        assert pages.rows(RUNS) == [(0, 0, None)]


def _runs_once_it_is_back(pages: MonitorWorld) -> list[Any]:
    """Return the runs, or an empty list as long as the pool has not reconnected."""
    try:
        return pages.rows(RUNS)
    except DatabaseUnavailableError:
        return []


@pytest.mark.kills
def test_bulk_replay_continues_after_postgresql_was_killed(
    pages: MonitorWorld,
    dead_letter_topic: DeadLetterTopic,
    operator: PageClient,
    killable_engines: Engines,
    start_replays: StartReplays,
) -> None:
    dead_letter_topic.add_many(5)
    begin(operator)
    killable_engines.postgres.kill()
    runner = start_replays()
    eventually(lambda: error_text(runner.check, JobFailingError))
    killable_engines.postgres.start()
    eventually(lambda: _runs_once_it_is_back(pages) == [(5, 0, "done")])

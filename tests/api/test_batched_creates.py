"""Creates of concurrent requests share a statement, and each has the result it would have alone (§4.1)."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any, NoReturn
from uuid import UUID

import psycopg
import pytest

from services.api.batched_statements import BatchedCreates
from shared.domain.intents import store
from shared.domain.intents.intent import Intent, NewIntent
from shared.platform.database.pool import (
    Database,
    DatabaseUnavailableError,
    StatementTimeoutError,
    fetch_scalar,
)
from shared.platform.settings import DatabaseSettings
from tests.api.batches import LONG_S, run_in_one_batch
from tests.api.conftest import written
from tests.database_roles import open_as
from tests.postgres_statistics import count_lock_waits
from tests.waiting import eventually

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
Created = Future[tuple[Intent, bool]]


@pytest.fixture
def creates(api_database: Database) -> BatchedCreates:
    return BatchedCreates(api_database, max_wait_s=LONG_S)


@pytest.fixture
def new(application_id: UUID) -> NewIntent:
    return NewIntent(application_id, "order-1", 25_000, "LYD")


@contextmanager
def _uncommitted(database: Database, new: NewIntent) -> Iterator[None]:
    """Keep creates with this reference waiting in PostgreSQL, until the end of the block."""
    with database.transaction() as connection:
        store.create_or_find(connection.cursor(), new)
        yield


def _create_in_one_batch(
    creates: BatchedCreates, database: Database, batch: Sequence[NewIntent]
) -> list[Created]:
    """Create these while another create has to wait. Its reference is "first"."""
    first = replace(batch[0], merchant_reference="first")
    return run_in_one_batch(creates, database, _uncommitted(database, first), first, batch)


def _transactions(database: Database) -> int:
    """Return how many transactions have created the intents there are, without those of other tests' helpers."""
    with database.cursor() as cursor:
        return int(
            fetch_scalar(
                cursor,
                "select count(distinct xmin::text) from payment_intents where merchant_reference <> 'first'",
            )
        )


def test_queued_intents_are_created_in_one_transaction_each_with_its_own_fields(
    creates: BatchedCreates, database: Database, new: NewIntent
) -> None:
    """§4.1: as sent, the order of metadata too; what was not sent is null, in the intent and in what follows it."""
    batch = [
        new,
        replace(new, merchant_reference='a "quoted", \\ {reference}', description="NULL", return_url=""),
        replace(new, merchant_reference="2", metadata={"z": 'كبير "x"', "a": "\\", "m": "1"}, amount=1_000),
        replace(new, merchant_reference="3", metadata={}, customer_external_id="customer-7", trace=TRACE),
        replace(new, merchant_reference="4", expires_at=datetime.now(UTC) + timedelta(days=3)),
    ]
    results = [created.result() for created in _create_in_one_batch(creates, database, batch)]
    assert _transactions(database) == 1
    assert written(database) == (6, 6, 6)
    for sent, (intent, is_new) in zip(batch, results, strict=True):
        assert is_new
        expected = {**asdict(sent), "expires_at": sent.expires_at or intent.created_at + timedelta(days=1)}
        del expected["trace"]
        assert expected.items() <= asdict(intent).items()
        assert list(intent.metadata or {}) == list(sent.metadata or {})
        with database.cursor() as cursor:
            assert store.find_intent(cursor, intent.uuid) == intent
            traces = cursor.execute(
                """select trace, (select trace from outbox where key = uuid::text) from payment_intents
                   where uuid = %s""",
                (intent.uuid,),
            )
            assert traces.fetchall() == [(sent.trace, sent.trace)]


def test_each_intent_of_a_batch_has_its_own_result(
    creates: BatchedCreates, database: Database, new: NewIntent
) -> None:
    """§4.1 rules 2 to 5: new, repeated, repeated with an expiry that is too soon, and a new one with such an expiry."""
    soon = datetime.now(UTC) + timedelta(minutes=1)
    existing = creates.run(new)[0]
    fresh, repeated, late_repeat, too_soon = _create_in_one_batch(
        creates,
        database,
        [
            replace(new, merchant_reference="order-2"),
            replace(new, amount=99_000),
            replace(new, expires_at=soon),
            replace(new, merchant_reference="order-3", expires_at=soon),
        ],
    )
    assert fresh.result()[1]
    assert repeated.result() == late_repeat.result() == (existing, False)
    with pytest.raises(store.ExpiryOutsideWindowError):
        too_soon.result()
    assert written(database) == (3, 3, 3)


def test_a_reference_that_is_twice_in_a_batch_makes_one_intent(
    creates: BatchedCreates, database: Database, new: NewIntent
) -> None:
    """§4.1 rules 3 and 4: the one that is told it was created has its own amount, the other gets that intent."""
    batch = [replace(new, amount=1_000 + number) for number in range(5)]
    results = [created.result() for created in _create_in_one_batch(creates, database, batch)]
    assert sorted(is_new for _, is_new in results) == [False] * 4 + [True]
    assert len({intent.uuid for intent, _ in results}) == 1
    for sent, (intent, is_new) in zip(batch, results, strict=True):
        assert is_new == (sent.amount == intent.amount)
    assert written(database) == (2, 2, 2)


def test_a_short_reference_that_is_taken_is_replaced(
    creates: BatchedCreates, database: Database, new: NewIntent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is taken by another intent of the batch."""
    numbers = count()
    monkeypatch.setattr(store, "new_reference", lambda: f"ref-{max(0, next(numbers) - 4)}")
    batch = [replace(new, merchant_reference=f"order-{number}") for number in range(3)]
    results = [created.result() for created in _create_in_one_batch(creates, database, batch)]
    assert all(is_new for _, is_new in results)
    assert len({intent.reference for intent, _ in results}) == 3


def test_an_error_of_one_intent_does_not_affect_the_others(
    creates: BatchedCreates, database: Database, new: NewIntent
) -> None:
    """The batch is rolled back, and each is created alone."""
    batch = [replace(new, merchant_reference=f"order-{n}", amount=1_000 if n != 2 else 5) for n in range(4)]
    created = _create_in_one_batch(creates, database, batch)
    with pytest.raises(psycopg.errors.CheckViolation):
        created.pop(2).result()
    assert all(one.result()[1] for one in created)
    assert written(database) == (4, 4, 4)


def test_a_batch_whose_thread_dies_is_created_by_the_others(
    creates: BatchedCreates, database: Database, new: NewIntent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are woken."""

    def die(*_: object) -> NoReturn:
        raise SystemExit

    monkeypatch.setattr(store, "create_batch", die)
    batch = [replace(new, merchant_reference=f"order-{number}") for number in range(4)]
    created = _create_in_one_batch(creates, database, batch)
    errors = [one.exception() for one in created]
    assert [type(error) for error in errors if error] == [SystemExit]
    assert all(one.result()[1] for one in created if not one.exception())
    assert written(database) == (4, 4, 4)


def test_an_outage_is_raised_for_every_intent_of_the_batch(
    creates: BatchedCreates, database: Database, admin_database: Database, new: NewIntent
) -> None:
    """PostgreSQL ends the session that runs the batch. The next creates work."""
    batch = [replace(new, merchant_reference=f"order-{number}") for number in range(4)]
    with ThreadPoolExecutor(1) as thread, _uncommitted(database, batch[-1]):
        creating = thread.submit(_create_in_one_batch, creates, database, batch)
        with admin_database.cursor() as cursor:
            eventually(lambda: cursor.execute(_END_WAITING_BATCH).rowcount)
        created = creating.result()
    assert [type(one.exception()) for one in created] == [DatabaseUnavailableError] * 4
    assert written(database) == (2, 2, 2)
    assert [creates.run(one)[1] for one in batch] == [True, True, True, False]


def test_a_batch_that_waits_too_long_for_one_intent_does_not_fail_the_others(
    database_settings: DatabaseSettings, database: Database, new: NewIntent
) -> None:
    """Regression: one repeat of an intent that somebody had locked was a 503 for all of its batch."""
    batch = [replace(new, merchant_reference=f"order-{number}") for number in range(4)]
    impatient = replace(database_settings, statement_timeout_s=1)
    with open_as("mizan_api", impatient) as pool, _uncommitted(database, batch[-1]):
        *others, waiting = _create_in_one_batch(BatchedCreates(pool, LONG_S), database, batch)
        assert all(one.result()[1] for one in others)
        assert isinstance(waiting.exception(), StatementTimeoutError)
    assert written(database) == (5, 5, 5)


_END_WAITING_BATCH = b"""
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%unnest(%'"""


def test_a_create_that_is_held_up_does_not_hold_up_others_for_long(
    api_database: Database, database: Database, new: NewIntent
) -> None:
    """One waits in PostgreSQL; others are created meanwhile."""
    creates = BatchedCreates(api_database)
    with ThreadPoolExecutor(8) as threads, _uncommitted(database, new):
        held_up = threads.submit(creates.run, new)
        eventually(lambda: count_lock_waits(database) == 1)
        others = [replace(new, merchant_reference=f"order-{number}") for number in range(2, 30)]
        assert all(is_new for _, is_new in threads.map(creates.run, others, timeout=10))
        assert not held_up.done()
    assert not held_up.result()[1]


def test_a_single_create_needs_no_batch(
    creates: BatchedCreates, new: NewIntent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs at once: nothing would end its wait."""
    monkeypatch.delattr(store, "create_batch")
    for number in range(3):
        assert creates.run(replace(new, merchant_reference=f"order-{number}"))[1]
    assert creates.queued == 0


def test_concurrent_batches_of_two_processes_lose_and_double_nothing(
    database_settings: DatabaseSettings, database: Database, new: NewIntent
) -> None:
    """Sixteen threads, and each reference four times, in different orders. None waits for another in a circle."""
    references = [f"order-{number}" for number in range(300)]
    with ExitStack() as stack:
        pools = [stack.enter_context(open_as("mizan_api", database_settings)) for _ in range(2)]
        processes = [BatchedCreates(pool) for pool in pools]

        def create_all(number: int) -> list[tuple[Intent, bool]]:
            own = references[number % 4 :: 4]
            Random(number).shuffle(own)
            return [
                processes[number // 4 % 2].run(replace(new, merchant_reference=reference))
                for reference in own
            ]

        threads = stack.enter_context(ThreadPoolExecutor(16))
        results: list[Any] = [result for results in threads.map(create_all, range(16)) for result in results]
    assert len(results) == 1_200
    assert sorted(intent.merchant_reference for intent, is_new in results if is_new) == sorted(references)
    assert len({intent.uuid for intent, _ in results}) == 300
    assert written(database) == (300, 300, 300)
    assert _transactions(database) < 300

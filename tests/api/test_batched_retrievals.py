"""Retrievals of concurrent requests share a statement, and each has the result it would have alone (§4.2)."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Cursor

from services.api.batched_statements import BatchedRetrievals
from shared.domain.intents import store
from shared.domain.intents.intent import Intent, NewIntent
from shared.platform.database.pool import Database
from tests.api.conftest import Merchant, data_of
from tests.postgres_statistics import count_lock_waits
from tests.waiting import eventually

LONG_S = 60.0
"""Longer than a test takes: nothing stops waiting for its batch."""


@pytest.fixture
def retrievals(api_database: Database) -> BatchedRetrievals:
    return BatchedRetrievals(api_database, max_wait_s=LONG_S)


@pytest.fixture
def intents(database: Database, application_id: UUID) -> list[Intent]:
    """With and without the fields that may be null, one of them of another application."""
    plain = NewIntent(application_id, "order-1", 25_000, "LYD")
    full = replace(
        plain,
        merchant_reference="order-2",
        description='a "b", \\ {c}',
        customer_external_id="customer-7",
        return_url="https://shop.example/",
        metadata={"z": 'كبير "x"', "a": "NULL"},
    )
    with database.cursor() as cursor:
        return [
            store.create_or_find(cursor, new)[0]
            for new in (plain, full, replace(plain, application_id=uuid4()))
        ]


def _retrieve_in_one_batch(
    retrievals: BatchedRetrievals, database: Database, uuids: Sequence[UUID]
) -> list[Future[Intent | None]]:
    """Retrieve these while another retrieval has to wait, so that they are queued."""
    with ThreadPoolExecutor(len(uuids) + 1) as threads, database.transaction() as connection:
        connection.execute("lock table payment_intents")
        threads.submit(retrievals.run, uuid4())
        eventually(lambda: count_lock_waits(database) == 1)
        found = [threads.submit(retrievals.run, uuid) for uuid in uuids]
        eventually(lambda: retrievals.queued == len(uuids))
    assert retrievals.queued == 0
    return found


def test_queued_retrievals_share_a_statement_and_each_has_its_own_intent(
    retrievals: BatchedRetrievals, database: Database, intents: list[Intent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the same one twice. One that does not exist is no result of another."""
    sizes: list[int] = []
    find_batch = store.find_batch

    def find_and_count(cursor: Cursor[Any], uuids: Sequence[UUID]) -> list[Intent | None]:
        sizes.append(len(uuids))
        return find_batch(cursor, uuids)

    monkeypatch.setattr(store, "find_batch", find_and_count)
    expected = [intents[2], intents[0], None, intents[1], intents[0]]
    uuids = [uuid4() if intent is None else intent.uuid for intent in expected]
    assert [found.result() for found in _retrieve_in_one_batch(retrievals, database, uuids)] == expected
    assert sizes == [5]


def test_concurrent_retrievals_of_two_merchants_never_mix(
    merchant: Merchant, other_merchant: Merchant
) -> None:
    """§4.2: each gets the intent that it asked for, and 403 for one of the other."""
    own, others = (
        [data_of(each.create(merchant_reference=f"order-{n}"), 201) for n in range(20)]
        for each in (merchant, other_merchant)
    )

    def retrieve(number: int) -> None:
        caller, mine, foreign = (merchant, own, others) if number % 2 else (other_merchant, others, own)
        for intent in Random(number).sample(mine, 20):
            assert data_of(caller.get(intent["uuid"]), 200) == intent
        for intent in Random(number).sample(foreign, 5):
            assert caller.get(intent["uuid"]).status_code == 403

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(retrieve, range(32)))

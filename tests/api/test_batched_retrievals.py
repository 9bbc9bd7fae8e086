"""Retrievals of concurrent requests share a statement, and each has the result it would have alone (§4.2)."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from tests.api.batches import LONG_S, run_in_one_batch
from tests.api.conftest import Merchant, data_of


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


@contextmanager
def _locked(database: Database) -> Iterator[None]:
    """Keep retrievals waiting in PostgreSQL, until the end of the block."""
    with database.transaction() as connection:
        connection.execute("lock table payment_intents")
        yield


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
    found = run_in_one_batch(retrievals, database, _locked(database), uuid4(), uuids)
    assert [each.result() for each in found] == expected
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

"""Runs several requests in one batch of a statement that concurrent requests share."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from services.api.batched_statements import BatchedStatement
from shared.platform.database.pool import Database
from tests.postgres_statistics import count_lock_waits
from tests.waiting import eventually

LONG_S = 60.0
"""Longer than a test takes: nothing stops waiting for its batch."""

Wanted = TypeVar("Wanted")
Result = TypeVar("Result")


def run_in_one_batch(
    statement: BatchedStatement[Wanted, Result],
    database: Database,
    lock: AbstractContextManager[Any],
    first: Wanted,
    batch: Sequence[Wanted],
) -> list[Future[Result]]:
    """Run these while `first` has to wait for `lock`, so that they are queued."""
    with ThreadPoolExecutor(len(batch) + 1) as threads, lock:
        threads.submit(statement.run, first)
        eventually(lambda: count_lock_waits(database) == 1)
        results = [threads.submit(statement.run, wanted) for wanted in batch]
        eventually(lambda: statement.queued == len(batch))
    assert statement.queued == 0
    return results

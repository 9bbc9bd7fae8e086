"""Revision 0025 on a database with attempts: each has the application of its intent, whoever writes it."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest

from shared.platform.settings import DatabaseSettings
from tests.shared.platform.database.migrating import migrate_to, revision_before
from tests.waiting import eventually

_REVISION = "0025"
_INTENTS = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select uuidv7(), n, n, 1000, 'LYD', now() from generate_series(1, %s) as n"""
_ATTEMPTS = """
insert into payment_attempts (intent_uuid, method, provider, state) select uuid, 'card', 'sandbox', state
from payment_intents, unnest(array['declined', 'paid', 'duplicate']) as state"""
_WRONG = """
select count(*) from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.application_id is distinct from i.application_id"""
_UPDATED = "update payment_attempts set state = 'duplicate', updated_at = now() where state = 'declined'"


@pytest.fixture
def database_before(empty_database: DatabaseSettings) -> DatabaseSettings:
    """A database at the revision before, with more attempts than fit a batch. Duplicates have their application."""
    migrate_to(empty_database, revision_before(_REVISION))
    with psycopg.connect(empty_database.url) as connection:
        connection.execute(_INTENTS, (1000,))
        connection.execute(_ATTEMPTS)
    return empty_database


def count_wrong(database: DatabaseSettings) -> int:
    with psycopg.connect(database.url) as connection:
        ((wrong,),) = connection.execute(_WRONG).fetchall()
    return int(wrong)


def test_existing_attempts_get_the_application_of_their_intent(database_before: DatabaseSettings) -> None:
    assert count_wrong(database_before) == 2000
    migrate_to(database_before, _REVISION)
    assert count_wrong(database_before) == 0


def test_attempt_that_somebody_has_locked_is_filled_later(database_before: DatabaseSettings) -> None:
    """The others do not wait for it, and the revision ends only when none is left."""
    with psycopg.connect(database_before.url) as checkout, ThreadPoolExecutor(1) as thread:
        checkout.execute("select from payment_attempts where state = 'paid' order by id limit 1 for update")
        migrating = thread.submit(migrate_to, database_before, _REVISION)
        try:
            eventually(lambda: count_wrong(database_before) == 1)
            assert not migrating.done()
        finally:
            checkout.rollback()
        migrating.result()
    assert count_wrong(database_before) == 0


def test_writes_of_the_previous_version_get_the_application(database_before: DatabaseSettings) -> None:
    """It names none; and another one is not stored."""
    migrate_to(database_before, _REVISION)
    with psycopg.connect(database_before.url) as connection:
        connection.execute("delete from payment_attempts")
        connection.execute(_ATTEMPTS)
        connection.execute(_UPDATED)
        connection.execute(
            """insert into payment_attempts (intent_uuid, application_id, method, provider, state)
               select uuid, %s, 'card', 'sandbox', 'declined' from payment_intents limit 1""",
            (UUID(int=7),),
        )
    assert count_wrong(database_before) == 0


def test_revision_can_be_repeated(database_before: DatabaseSettings) -> None:
    for _ in range(2):
        migrate_to(database_before, _REVISION)
        with psycopg.connect(database_before.url) as connection:
            connection.execute("update alembic_version set version_num = %s", (revision_before(_REVISION),))
    assert count_wrong(database_before) == 0

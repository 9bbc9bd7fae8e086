"""The schema and its migrations, on real PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from shared.platform.database.pool import Database
from shared.platform.database.schema import SchemaOutdatedError, check_schema, head_revision
from shared.platform.migrations.runner import migrate
from shared.platform.settings import DatabaseSettings
from tests.clock import Clock


def _one(database: Database, query: str, *values: object) -> Any:
    with database.transaction() as connection:
        row = connection.execute(query.encode(), values).fetchone()
    assert row is not None
    return row[0]


def test_concurrent_migrations_run_each_revision_once(empty_database: DatabaseSettings) -> None:
    """Several services start together, and all end at the newest revision."""
    with ThreadPoolExecutor(6) as pool:
        reached = list(pool.map(lambda _: migrate(empty_database.url), range(6)))
    assert set(reached) == {head_revision()}


def test_migrating_again_keeps_all_rows(database: Database, database_settings: DatabaseSettings) -> None:
    """A second start finds the data of the first."""
    with database.transaction() as connection:
        connection.execute("insert into merchants (name) values ('old')")
    migrate(database_settings.url)
    assert _one(database, "select name from merchants") == "old"


def test_outdated_schema_is_refused(empty_database: DatabaseSettings) -> None:
    """A service is not ready on a database that was not migrated; a newer schema is fine."""
    database = Database(empty_database, "test")
    with pytest.raises(SchemaOutdatedError):
        check_schema(database)
    migrate(empty_database.url)
    check_schema(database)
    with database.transaction() as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    check_schema(database)
    database.close()


def test_references_that_operators_typed_are_marked(
    database: Database, database_settings: DatabaseSettings
) -> None:
    """Revision 0013 finds them in the audit log."""
    with database.transaction() as connection:
        connection.execute(
            """alter table payment_attempts drop column reference_from_operator;
               update alembic_version set version_num = '0012';
               with merchant as (insert into merchants (name) values ('m') returning id),
               application as (insert into applications (merchant_id, name) select id, 'shop' from merchant
                               returning id),
               intent as (insert into payment_intents (application_id, merchant_reference, reference, amount, currency,
                                                       expires_at)
                          select id, 'order', 'r', 1000, 'LYD', mizan_now() from application returning uuid),
               attempts as (insert into payment_attempts (intent_uuid, method, provider, state, provider_reference)
                            select uuid, 'card', 'plutu', 'declined', reference
                            from intent, unnest(array['typed', 'replaced', 'provider']) as reference
                            returning id, provider_reference)
               insert into audit_log (actor, action, details)
               select 'operator', 'attempt_decided',
                      jsonb_build_object('attempt', id, 'reference', case provider_reference when 'typed' then 'typed'
                                                                     else 'another' end)
               from attempts where provider_reference <> 'provider'"""
        )
    migrate(database_settings.url)
    typed = "select string_agg(provider_reference, ',') from payment_attempts where reference_from_operator"
    assert _one(database, typed) == "typed"


def test_events_are_stored_in_the_partition_of_their_month(database: Database) -> None:
    """Also at the last and the first millisecond of a month."""
    first = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    next_month = (first + timedelta(days=32)).replace(day=1)
    for at, month in ((next_month - timedelta(milliseconds=1), first), (next_month, next_month)):
        with database.transaction() as connection:
            row = connection.execute(
                """insert into intent_events (id, intent_uuid, seq, type, at)
                   values (uuid7_floor(%s), uuidv7(), 1, 'payment_intent.created', %s)
                   returning tableoid::regclass::text""",
                (at, at),
            ).fetchone()
        assert row == (f"intent_events_{month:%Y_%m}",)


def test_rows_without_a_month_partition_go_into_the_default_partition(database: Database) -> None:
    """No partition exists ten years ahead."""
    partition = _one(
        database,
        """insert into intent_events (id, intent_uuid, seq, type, at)
           values (uuid7_floor(now() + interval '10 years'), uuidv7(), 1, 'payment_intent.created', now())
           returning tableoid::regclass::text""",
    )
    assert partition == "intent_events_default"


def test_partitions_are_the_same_in_every_time_zone(database: Database) -> None:
    """Their bounds are in UTC, and creating them twice is harmless."""
    with database.transaction() as connection:
        connection.execute("set local timezone = 'Pacific/Auckland'")
        for _ in range(2):
            connection.execute("select make_month_partitions('2040-03-15')")
        row = connection.execute(
            """select pg_get_expr(relpartbound, oid), uuid7_floor('2040-03-01 00:00Z'), uuid7_floor('2040-04-01 00:00Z')
               from pg_class where relname = 'webhook_tries_2040_03'"""
        ).fetchone()
    assert row is not None
    assert row[0] == f"FOR VALUES FROM ('{row[1]}') TO ('{row[2]}')"


def test_uuid7_floor_is_a_lower_bound_for_ids_of_its_millisecond(database: Database) -> None:
    """uuid7_floor() and uuidv7() store the time in the same bits."""
    before, id_, after = [
        _one(database, query)
        for query in (
            "select uuid7_floor(clock_timestamp())",
            "select uuidv7()",
            "select uuid7_floor(clock_timestamp() + interval '1 ms')",
        )
    ]
    assert isinstance(id_, UUID)
    assert before < id_ < after


def test_only_one_attempt_of_an_intent_can_be_in_flight(database: Database, application_id: UUID) -> None:
    """The database itself refuses a second attempt in sent or unknown, a second paid one, and a sent one without a
    time of verification, so that no customer is charged twice.
    """
    intent = _one(
        database,
        """insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
           values (%s, 'r', 'ref', 1000, 'LYD', now()) returning uuid""",
        application_id,
    )
    insert = """insert into payment_attempts (intent_uuid, method, provider, state, sent_at, next_verify_at)
                values (%s, 'card', 'sandbox', %s, now(), now()) returning id"""
    _one(database, insert, intent, "declined")
    _one(database, insert, intent, "unknown")
    _one(database, insert, intent, "awaiting_code")
    with pytest.raises(psycopg.errors.UniqueViolation):
        _one(database, insert, intent, "sent")
    _one(database, insert, intent, "paid")
    with pytest.raises(psycopg.errors.UniqueViolation):
        _one(database, insert, intent, "paid")
    never_verified = insert.replace("now(), now()", "now(), null")
    with pytest.raises(psycopg.errors.CheckViolation):
        _one(database, never_verified, intent, "sent")


@pytest.mark.parametrize("amount", [999, 1_000_000_001])
def test_the_database_checks_the_limits_of_an_amount(
    database: Database, application_id: UUID, amount: int
) -> None:
    """§8, as a last safeguard."""
    with pytest.raises(psycopg.errors.CheckViolation), database.transaction() as connection:
        connection.execute(
            """insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
               values (%s, 'r', 'ref', %s, 'LYD', now())""",
            (application_id, amount),
        )


def test_tests_can_move_the_clock(clock: Clock) -> None:
    """Only by replacing mizan_now() in their own database."""
    before = clock.now()
    clock.advance(timedelta(days=40))
    assert timedelta(days=40) <= clock.now() - before < timedelta(days=40, minutes=1)

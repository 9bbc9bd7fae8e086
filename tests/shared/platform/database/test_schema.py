"""The schema and its migrations, on the real database."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config
from sqlalchemy.pool import NullPool

from shared.platform.database.pool import Database
from shared.platform.database.schema import MIGRATIONS, SchemaOutdatedError, check_schema, head_revision
from shared.platform.migrations.runner import migrate
from shared.platform.settings import DatabaseSettings
from tests.clock import Clock
from tests.engines import TestEngines
from tests.waiting import eventually


@pytest.fixture
def empty_database(engines: TestEngines) -> Iterator[DatabaseSettings]:
    name = f"mizan_{uuid4().hex[:12]}"
    with psycopg.connect(engines.database_url, autocommit=True) as connection:
        connection.execute(f'create database "{name}"'.encode())
        yield DatabaseSettings(f"{engines.database_url.rsplit('/', 1)[0]}/{name}", 4, 3, 2.0, 15)
        connection.execute(f'drop database "{name}" with (force)'.encode())


def _one(database: Database, query: str, *values: object) -> Any:
    with database.transaction() as connection:
        row = connection.execute(query.encode(), values).fetchone()
    assert row is not None
    return row[0]


_WAITS_FOR = "select true from pg_locks where relation = %s::regclass and not granted"


def _migrate_to(revision: str, url: str) -> None:
    engine = sqlalchemy.create_engine(
        url.replace("postgresql:", "postgresql+psycopg:", 1), poolclass=NullPool
    )
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()


def test_many_migrate_at_the_same_moment(empty_database: DatabaseSettings) -> None:
    """Several services start together: the migrations run once and everybody ends at the head."""
    with ThreadPoolExecutor(6) as pool:
        reached = list(pool.map(lambda _: migrate(empty_database.url), range(6)))
    assert set(reached) == {head_revision()}


def test_migrating_again_keeps_what_is_there(database: Database, database_settings: DatabaseSettings) -> None:
    """A second start finds the first one's data."""
    with database.transaction() as connection:
        connection.execute("insert into merchants (name) values ('old')")
    migrate(database_settings.url)
    assert _one(database, "select name from merchants") == "old"


def test_indexes_that_were_cut_off_while_being_built_are_built_again(
    database: Database, database_settings: DatabaseSettings
) -> None:
    """Building beside ongoing payments is no transaction: what is left of it must not stop the next migration."""
    with database.transaction() as connection:
        connection.execute("drop index payment_attempts_open")
        connection.execute("update alembic_version set version_num = '0010'")
    assert migrate(database_settings.url) == head_revision()
    assert _one(database, "select count(*) from pg_class where relname = 'payment_attempts_open'") == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("payment_intents", "payment_attempts"),
        ("payment_attempts", "payment_intents"),
        ("payment_intents", "outbox"),
        ("payment_attempts", "audit_log"),
    ],
)
def test_no_payment_is_ended_by_migrating_beside_it(
    empty_database: DatabaseSettings, first: str, second: str
) -> None:
    """Regression: a migration that held one table and waited for another made a deadlock with a payment under way."""
    _migrate_to("0009", empty_database.url)
    with (
        psycopg.connect(empty_database.url) as payment,
        psycopg.connect(empty_database.url, autocommit=True) as looking,
        ThreadPoolExecutor(1) as pool,
    ):
        payment.execute(f"lock table {first} in row exclusive mode".encode())
        migrating = pool.submit(migrate, empty_database.url)
        eventually(lambda: looking.execute(_WAITS_FOR, (first,)).fetchone())
        payment.execute(f"lock table {second} in row exclusive mode".encode())
        payment.commit()
        assert migrating.result(60) == head_revision()


def test_a_schema_that_is_too_old_is_noticed(empty_database: DatabaseSettings) -> None:
    """A service must not be ready on a database that was not migrated; a newer one is fine."""
    database = Database(empty_database, "test")
    with pytest.raises(SchemaOutdatedError):
        check_schema(database)
    migrate(empty_database.url)
    check_schema(database)
    with database.transaction() as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    check_schema(database)
    database.close()


def test_history_goes_into_the_partition_of_its_month(database: Database) -> None:
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


def test_a_month_nobody_made_loses_nothing(database: Database) -> None:
    """Ten years ahead no partition exists: the default one takes it."""
    place = _one(
        database,
        """insert into intent_events (id, intent_uuid, seq, type, at)
           values (uuid7_floor(now() + interval '10 years'), uuidv7(), 1, 'payment_intent.created', now())
           returning tableoid::regclass::text""",
    )
    assert place == "intent_events_default"


def test_partitions_are_made_alike_in_every_time_zone(database: Database) -> None:
    """Whoever makes them: bounds are in UTC, and making them twice is harmless."""
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


def test_the_smallest_id_of_a_moment_bounds_the_ids_of_that_moment(database: Database) -> None:
    """uuid7_floor() and uuidv7() agree on where the time is in an id."""
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


def test_only_one_attempt_of_an_intent_can_be_under_way(database: Database, application_id: UUID) -> None:
    """Nobody is charged twice: the database itself refuses a second attempt in sent or unknown, or a second one
    that is paid, or a sent one that nobody would ask about."""
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
    forgotten = insert.replace("now(), now()", "now(), null")
    with pytest.raises(psycopg.errors.CheckViolation):
        _one(database, forgotten, intent, "sent")


@pytest.mark.parametrize("amount", [999, 1_000_000_001])
def test_the_database_itself_knows_the_limits_of_an_amount(
    database: Database, application_id: UUID, amount: int
) -> None:
    """§8, as the last line of defence."""
    with pytest.raises(psycopg.errors.CheckViolation), database.transaction() as connection:
        connection.execute(
            """insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
               values (%s, 'r', 'ref', %s, 'LYD', now())""",
            (application_id, amount),
        )


def test_tests_can_turn_the_clock(clock: Clock) -> None:
    """And only by replacing the function in their own database."""
    before = clock.now()
    clock.advance(timedelta(days=40))
    assert timedelta(days=40) <= clock.now() - before < timedelta(days=40, minutes=1)

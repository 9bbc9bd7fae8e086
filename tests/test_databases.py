"""A reused test database is like a new one, or it is dropped."""

import os
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.databases import Databases, environment_lock

FILL = """with merchant as (insert into merchants (name) values ('Tripoli Coffee') returning id)
          insert into audit_log (merchant_id, actor, action) select id, 'a test', 'made' from merchant"""
STOP_CLOCK = """create or replace function mizan_now() returns timestamptz
                language sql stable parallel safe return timestamptz '2020-01-01'"""
LEFT = """select (select count(*) from merchants) + (select count(*) from audit_log),
                 mizan_now() > now() - interval '1 minute',
                 nextval((select seqrelid from pg_sequence))"""


def change(databases: Databases, name: str, *statements: str) -> None:
    with psycopg.connect(databases.url(name)) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_rows_clock_and_sequence_of_a_reused_database_are_reset(databases: Databases) -> None:
    """Also the rows of the audit log, which is append-only. The old name of the database no longer works."""
    name = databases.take()
    change(databases, name, FILL, STOP_CLOCK, "select nextval((select seqrelid from pg_sequence))")
    new = databases._empty(name)
    assert new is not None
    with psycopg.connect(databases.url(new)) as connection:
        assert connection.execute(LEFT).fetchone() == (0, True, 1)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(databases.url(name))
    databases.drop(new)


@pytest.mark.parametrize(
    "statement",
    [
        "create table more (id int)",
        "drop table webhook_tries_default",
        "alter table merchants add column more int",
        "alter table merchants alter column name drop not null",
        "create index on merchants (name)",
        "alter table audit_log disable trigger user",
        "create function more() returns int language sql return 1",
        f"{FILL}; analyze merchants",
        "update alembic_version set version_num = 'another'",
    ],
)
def test_database_with_a_changed_schema_or_statistics_is_dropped(
    databases: Databases, statement: str
) -> None:
    name = databases.take()
    change(databases, name, statement)
    assert databases._empty(name) is None
    with psycopg.connect(databases._server_url) as connection:
        names = [row[0] for row in connection.execute("select datname from pg_database")]
    assert not databases._names - set(names)


def test_sessions_of_a_database_in_use_are_terminated(databases: Databases) -> None:
    name = databases.take()
    with psycopg.connect(databases.url(name)) as somebody:
        somebody.execute("lock table merchants")
        new = databases._empty(name)
        assert new is not None
        with pytest.raises(psycopg.OperationalError):
            somebody.execute("select 1")
    databases.drop(new)


def test_environment_is_not_changed_while_the_background_connects() -> None:
    """It crashed the process: libpq reads the environment without holding the GIL."""
    with ThreadPoolExecutor(1) as thread:
        with environment_lock:
            changed = thread.submit(os.environ.__setitem__, "MIZAN_TEST_OF_THE_ENVIRONMENT", "changed")  # noqa: TID251
            with pytest.raises(TimeoutError):
                changed.result(0.2)
        changed.result(10)
    del os.environ["MIZAN_TEST_OF_THE_ENVIRONMENT"]  # noqa: TID251

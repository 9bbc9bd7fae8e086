"""Prepared statements return the same rows and raise the same errors as other statements."""

from dataclasses import replace

import psycopg
import pytest
from psycopg import errors
from psycopg.pq import TransactionStatus

from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.database.prepared_statements import PreparedStatement, run_directly
from shared.platform.settings import DatabaseSettings

ECHO = PreparedStatement("select $1::text, $2::integer + 1")


def test_parameters_and_results_are_text(database: Database) -> None:
    """Null is None in both directions; no row is None."""
    with database.cursor() as cursor:
        assert ECHO.fetch_one(cursor, ["قهوة".encode(), b"41"]) == ["قهوة".encode(), b"42"]
        assert ECHO.fetch_one(cursor, [None, None]) == [None, None]
        assert PreparedStatement("select 1 where $1").fetch_one(cursor, [b"false"]) is None


def test_each_connection_prepares_a_statement_once(database: Database) -> None:
    """Also within a transaction, where an unknown name would abort the transaction."""
    with database.transaction() as first, database.transaction() as second:
        for connection in (first, second, first):
            assert ECHO.fetch_one(connection.cursor(), [b"x", b"1"]) == [b"x", b"2"]
            query = "select count(*) from pg_prepared_statements where statement like 'select $1::text%%'"
            assert connection.execute(query).fetchone() == (1,)


def test_statement_is_planned_again_after_the_replan_interval(database: Database) -> None:
    """On the same connection."""
    statement = PreparedStatement("select $1::text, 'planned again'", replan_after_s=0)
    with database.cursor() as cursor:
        planned = "select prepare_time from pg_prepared_statements where statement like '%%planned again%%'"
        times = []
        for _ in range(3):
            assert statement.fetch_one(cursor, [b"x"]) == [b"x", b"planned again"]
            times.append(cursor.execute(planned).fetchall())
    assert [len(rows) for rows in times] == [1, 1, 1]
    assert times[0] < times[1] < times[2]


def test_failed_replanning_is_retried(database_settings: DatabaseSettings, database: Database) -> None:
    """Regression: the statement was deallocated, but counted as prepared, so all later calls failed."""
    statement = PreparedStatement("select count(*) from outbox where topic = $1", replan_after_s=0)
    impatient = Database(replace(database_settings, statement_timeout_s=1, pool_size=1), "test")
    with impatient.cursor() as cursor:
        statement.fetch_one(cursor, [b"x"])
    with database.transaction() as connection:
        connection.execute("lock table outbox in access exclusive mode")
        with pytest.raises(DatabaseUnavailableError), impatient.cursor() as cursor:
            statement.fetch_one(cursor, [b"x"])
    with impatient.cursor() as cursor:
        assert statement.fetch_one(cursor, [b"x"]) == [b"0"]
    impatient.close()


def test_prepared_statement_survives_a_rollback(database: Database) -> None:
    """psycopg would deallocate all prepared statements of the connection, if it had any of its own."""
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), database.transaction() as connection:
            for _ in range(10):
                connection.execute("select %s::text", ("something that is asked often",))
            assert ECHO.fetch_one(connection.cursor(), [b"x", b"1"]) == [b"x", b"2"]
            raise ZeroDivisionError
    with database.cursor() as cursor:
        assert ECHO.fetch_one(cursor, [b"x", b"1"]) == [b"x", b"2"]


def test_errors_are_psycopg_errors(database: Database) -> None:
    """So that callers handle one kind of errors only."""
    with pytest.raises(psycopg.errors.InvalidTextRepresentation), database.cursor() as cursor:
        ECHO.fetch_one(cursor, [b"x", b"many"])
    with pytest.raises(psycopg.errors.UndefinedTable), database.cursor() as cursor:
        PreparedStatement("select * from nowhere").fetch_one(cursor, [])


def test_lost_connection_raises_database_unavailable(database: Database) -> None:
    """The next connection works."""
    end = PreparedStatement("select pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(DatabaseUnavailableError), database.cursor() as cursor:
        end.fetch_one(cursor, [])
    with database.cursor() as cursor:
        assert ECHO.fetch_one(cursor, [b"x", b"1"]) == [b"x", b"2"]


def test_statement_timeout_raises_database_unavailable(database: Database) -> None:
    """PostgreSQL's statement_timeout applies to prepared statements too."""
    slow = PreparedStatement("select pg_sleep(20)")
    with pytest.raises(DatabaseUnavailableError, match="statement timeout"), database.cursor() as cursor:
        cursor.execute("set statement_timeout = '0.2s'")
        slow.fetch_one(cursor, [])


def test_statements_that_are_run_directly_raise_what_psycopg_would_raise(
    database_settings: DatabaseSettings,
) -> None:
    """A constraint that is checked at the commit, and a connection that is lost."""
    with psycopg.connect(database_settings.url, autocommit=True) as connection:
        run_directly(connection, b"begin")
        connection.execute("create temporary table one (id integer unique deferrable initially deferred)")
        connection.execute("insert into one values (1), (1)")
        with pytest.raises(errors.UniqueViolation):
            run_directly(connection, b"commit")
        assert connection.info.transaction_status == TransactionStatus.IDLE
        with pytest.raises(psycopg.OperationalError):
            run_directly(connection, b"select pg_terminate_backend(pg_backend_pid())")

"""The connection pool, with the real PostgreSQL stopped, killed and restarted under it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from time import monotonic

import psutil
import psycopg
import pytest

from chaos.process_faults import limit_files
from shared.platform.database.pool import Database, DatabaseUnavailableError, StatementTimeoutError
from shared.platform.settings import DatabaseSettings
from stack.engines import Engines
from stack.ports import find_free_ports
from tests.waiting import error_text, eventually


def _open_connections(database: Database, connections: int) -> None:
    """Use so many connections at once that the pool keeps all of them."""
    barrier = Barrier(connections)

    def use(_: int) -> None:
        with database.transaction() as connection:
            connection.execute("select 1")
            barrier.wait(5)

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(use, range(connections)))


def test_transaction_is_rolled_back_if_its_block_raises(database: Database) -> None:
    """It is committed at the end of the block otherwise."""
    with pytest.raises(KeyError), database.transaction() as connection:
        connection.execute("insert into merchants (name) values ('ghost')")
        raise KeyError
    with database.transaction() as connection:
        connection.execute("insert into merchants (name) values ('real')")
    with database.transaction() as connection:
        assert connection.execute("select name from merchants").fetchall() == [("real",)]


@pytest.mark.kills
def test_dead_connections_are_replaced_after_a_server_restart(
    killable_engines: Engines, database: Database
) -> None:
    """The next callers do not notice that all connections of the pool were closed with the server."""
    _open_connections(database, 6)
    killable_engines.postgres.restart()
    for _ in range(12):
        database.check()


@pytest.mark.kills
def test_a_panic_of_the_server_is_an_outage(killable_engines: Engines, database: Database) -> None:
    """It cannot write its log, and says so with the code of an internal error."""
    postgres = killable_engines.postgres
    try:
        with (
            pytest.raises(DatabaseUnavailableError, match="could not write to") as caught,
            database.transaction() as connection,
        ):
            # Only this session: another process of the server could be the first that has to write.
            limit_files([psutil.Process(connection.info.backend_pid)], 0)
            connection.execute("select pg_logical_emit_message(true, 'test', repeat('x', 100000))")
        assert type(caught.value.__cause__) is psycopg.errors.InternalError_
    finally:
        postgres.restart()
    eventually(lambda: not error_text(database.check, DatabaseUnavailableError))


@pytest.mark.kills
def test_calls_fail_while_the_server_is_killed_and_succeed_after_its_restart(
    killable_engines: Engines, database: Database
) -> None:
    """After kill -9 callers soon get DatabaseUnavailableError."""
    _open_connections(database, 3)
    killable_engines.postgres.kill()
    try:
        started = monotonic()
        with pytest.raises(DatabaseUnavailableError):
            database.check()
        assert monotonic() - started < 10
    finally:
        killable_engines.postgres.start()
    eventually(lambda: not error_text(database.check, DatabaseUnavailableError))


def test_connection_lost_during_a_transaction_raises_database_unavailable(database: Database) -> None:
    """Whichever error psycopg raises."""
    with pytest.raises(DatabaseUnavailableError), database.transaction() as connection:
        connection.execute("select pg_terminate_backend(pg_backend_pid())")
    assert not error_text(database.check, DatabaseUnavailableError)


def test_waiting_for_a_free_connection_has_a_time_limit(database_settings: DatabaseSettings) -> None:
    """The caller gets an error after the pool's timeout."""
    database = Database(replace(database_settings, pool_size=1, pool_timeout_s=0.2), "test")
    with database.transaction(), pytest.raises(DatabaseUnavailableError), database.transaction():
        pass
    database.close()


def test_a_statement_that_takes_too_long_raises_statement_timeout(
    database_settings: DatabaseSettings,
) -> None:
    """The server cancels it; the caller may try again, with less to do."""
    database = Database(replace(database_settings, statement_timeout_s=1), "test")
    with (
        pytest.raises(StatementTimeoutError, match="statement timeout"),
        database.transaction() as connection,
    ):
        connection.execute("select pg_sleep(20)")
    database.close()


def test_starting_without_a_server_does_not_hang(database_settings: DatabaseSettings) -> None:
    """The pool connects at the first use, and that use fails."""
    nobody = find_free_ports(1)[0]
    started = monotonic()
    database = Database(replace(database_settings, url=f"postgresql://mizan@127.0.0.1:{nobody}/x"), "test")
    with pytest.raises(DatabaseUnavailableError):
        database.check()
    database.close()
    assert monotonic() - started < 10


@pytest.mark.kills
def test_callers_fail_at_once_while_the_server_is_unavailable(
    killable_engines: Engines, database: Database
) -> None:
    """They do not wait for a timeout; soon after the server is back, calls succeed again."""
    _open_connections(database, 4)
    killable_engines.postgres.kill()
    try:
        started = monotonic()
        with ThreadPoolExecutor(8) as pool:
            errors = list(
                pool.map(lambda _: error_text(database.check, DatabaseUnavailableError), range(200))
            )
        assert all(errors)
        assert monotonic() - started < 20  # a pool that waits would take 200 / 8 times its timeout
    finally:
        killable_engines.postgres.start()
    eventually(lambda: not error_text(database.check, DatabaseUnavailableError), within=2)


@pytest.mark.kills
def test_a_statement_on_a_frozen_server_is_aborted(
    killable_engines: Engines, database_settings: DatabaseSettings
) -> None:
    """A frozen server cannot apply its own statement_timeout; the watchdog aborts the connection."""
    database = Database(replace(database_settings, statement_timeout_s=1, connect_timeout_s=1), "test")
    database.check()
    killable_engines.postgres.suspend()
    try:
        started = monotonic()
        with pytest.raises(DatabaseUnavailableError):
            database.check()
        assert 1 < monotonic() - started < 10
    finally:
        killable_engines.postgres.resume()
    eventually(lambda: not error_text(database.check, DatabaseUnavailableError))
    database.close()


@pytest.mark.kills
def test_a_transaction_on_a_frozen_server_is_aborted(
    killable_engines: Engines, database_settings: DatabaseSettings
) -> None:
    """After twice the limit of a statement, whichever of its statements hangs, the commit included."""
    database = Database(replace(database_settings, statement_timeout_s=1, connect_timeout_s=1), "test")
    try:
        with pytest.raises(DatabaseUnavailableError), database.transaction() as connection:
            connection.execute("insert into merchants (name) values ('frozen')")
            killable_engines.postgres.suspend()
    finally:
        killable_engines.postgres.resume()
    eventually(lambda: not error_text(database.check, DatabaseUnavailableError))
    database.close()


@pytest.mark.kills
def test_other_connections_to_a_frozen_server_are_not_tried(
    killable_engines: Engines, database_settings: DatabaseSettings
) -> None:
    """Each would take its user the whole limit again, while another server may be the primary by now."""
    database = Database(replace(database_settings, statement_timeout_s=1, connect_timeout_s=1), "test")
    _open_connections(database, 4)
    killable_engines.postgres.suspend()
    try:
        with pytest.raises(DatabaseUnavailableError):
            database.check()
    finally:
        killable_engines.postgres.resume()
    assert not database._pool._idle
    eventually(lambda: not error_text(database.check, DatabaseUnavailableError))
    database.close()


def test_other_connections_to_a_standby_are_not_tried(database: Database) -> None:
    """Each would cost its user an error."""
    _open_connections(database, 4)
    with pytest.raises(DatabaseUnavailableError), database.cursor() as cursor:
        cursor.execute("set default_transaction_read_only = on")
        cursor.execute("insert into merchants (name) values ('late')")
    assert not database._pool._idle
    database.check()


def test_a_client_that_stalls_in_a_transaction_loses_its_locks(
    database_settings: DatabaseSettings, database: Database
) -> None:
    """A frozen process must not block everybody else forever; its transaction is rolled back."""
    with database.transaction() as connection:
        limit = connection.execute("show idle_in_transaction_session_timeout").fetchone()
    assert limit == ("15s",)
    stalling = Database(database_settings, "test", idle_in_transaction_session_timeout="200ms")
    with pytest.raises(DatabaseUnavailableError), stalling.transaction() as connection:
        connection.execute("lock table merchants in access exclusive mode")
        with database.transaction() as other:
            other.execute("insert into merchants (name) values ('in time')")
    stalling.close()


def test_transaction_reconnects_when_the_server_became_a_standby(database: Database) -> None:
    """As a single statement does."""
    with database.transaction() as connection:
        first = connection.info.backend_pid
        connection.execute("set default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailableError), database.transaction() as connection:
        connection.execute("insert into merchants (name) values ('late')")
    with database.transaction() as connection:
        assert connection.info.backend_pid != first
        connection.execute("insert into merchants (name) values ('in time')")


def test_a_standby_is_not_ready(database_settings: DatabaseSettings) -> None:
    """It responds, but accepts no writes."""
    standby = Database(database_settings, "test", default_transaction_read_only="on")
    with pytest.raises(DatabaseUnavailableError, match="standby"):
        standby.check()
    standby.close()


def test_statement_reconnects_when_the_server_became_a_standby(database: Database) -> None:
    """The refused write raises DatabaseUnavailableError, and the next call gets a new connection."""
    with pytest.raises(DatabaseUnavailableError), database.cursor() as cursor:
        first = cursor.connection.info.backend_pid
        cursor.execute("set default_transaction_read_only = on")
        cursor.execute("insert into merchants (name) values ('late')")
    with database.cursor() as cursor:
        assert cursor.connection.info.backend_pid != first
        cursor.execute("insert into merchants (name) values ('in time')")


def test_no_connection_is_lost_when_the_watchdog_cannot_start(
    database_settings: DatabaseSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without free threads the call fails; later calls get a connection and a watchdog."""
    database = Database(replace(database_settings, pool_size=1, pool_timeout_s=0.2), "test")
    with monkeypatch.context() as patch:
        patch.setattr("shared.platform.database.statement_watchdog.Thread.start", lambda _: _fail())
        with pytest.raises(RuntimeError, match="no more threads"):
            database.check()
    database.check()
    assert database._watchdog._thread is not None
    assert database._watchdog._thread.is_alive()
    database.close()


def _fail() -> None:
    raise RuntimeError("no more threads")


def test_a_single_statement_is_committed_at_once(database: Database) -> None:
    """No transaction is left open."""
    with database.cursor() as cursor:
        cursor.execute("insert into merchants (name) values ('alone')")
        with database.transaction() as other:
            assert other.execute("select name from merchants").fetchall() == [("alone",)]


def test_connection_left_in_a_transaction_is_not_reused(database: Database) -> None:
    """The next caller must not continue a foreign transaction."""
    with database.cursor() as cursor:
        cursor.execute("begin")
        first = cursor.connection.info.backend_pid
    with database.cursor() as cursor:
        assert cursor.connection.info.backend_pid != first


def test_connection_is_reused_until_its_maximum_age(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the server frees its memory, and a failover is followed."""
    pids = []
    for max_age in (1800, 1800, 0, 1800):
        monkeypatch.setattr("shared.platform.database.connections._MAX_AGE_S", max_age)
        with database.cursor() as cursor:
            pids.append(cursor.connection.info.backend_pid)
    assert pids[0] == pids[1] == pids[2] != pids[3]


def test_wrong_statement_is_not_reported_as_an_outage(database: Database) -> None:
    """Bugs must not be retried forever."""
    with pytest.raises(psycopg.errors.UndefinedTable), database.transaction() as connection:
        connection.execute("select * from nowhere")


def test_program_limit_is_not_reported_as_an_outage(database: Database) -> None:
    """psycopg raises an OperationalError for it, but a retry would always fail again."""
    with pytest.raises(psycopg.errors.OperationalError), database.transaction() as connection:
        connection.execute("select repeat('x', 2000000000)")


def test_options_of_the_database_url_are_kept(database_settings: DatabaseSettings) -> None:
    """Ours are added to them."""
    url = f"{database_settings.url}?options=-csearch_path%3Delsewhere"
    database = Database(replace(database_settings, url=url), "test")
    with database.transaction() as connection:
        assert connection.execute("show search_path").fetchone() == ("elsewhere",)
        assert connection.execute("show timezone").fetchone() == ("UTC",)
    database.close()

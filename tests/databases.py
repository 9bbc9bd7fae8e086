"""A pool of migrated, empty databases for tests. After a test, its database is emptied and reused.

Emptying takes a fifth of the time of a copy, and happens in the background while the next test runs. If a test has
changed the schema or the statistics of its database, it is dropped instead.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from threading import RLock
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from shared.platform.database.pool import Database
from shared.platform.database.roles import OWNER, SERVICE_ROLES
from shared.platform.migrations.runner import migrate
from tests.database_roles import url_as

_CATALOGS = (
    "pg_attribute",
    "pg_attrdef",
    "pg_constraint",
    "pg_index",
    "pg_inherits",
    "pg_rewrite",
    "pg_trigger",
    "pg_type",
)
"""Catalogs in which every change of the schema is visible. Emptying a table changes none of them."""
_SCHEMA = sql.SQL(
    """select array[{catalogs}] || array[
         (select count(*) from pg_class where relkind <> 't'),
         (select sum(hashtextextended(relname || relacl::text, 0)) from pg_class where oid >= 16384),
         (select count(*) from pg_statistic where starelid >= 16384),
         (select count(*) from pg_db_role_setting where setdatabase =
            (select oid from pg_database where datname = current_database())),
         (select sum(hashtextextended(proname || prosrc || coalesce(prosqlbody::text, ''), 0)) from pg_proc
            where oid >= 16384 and proname <> 'mizan_now')]
       || array(select hashtextextended(version_num, 0) from alembic_version)"""
).format(
    catalogs=sql.SQL(", ").join(
        sql.SQL("(select count(*) * 10000000000 + max(xmin::text::bigint) from {})").format(
            sql.Identifier(name)
        )
        for name in _CATALOGS
    )
)
_NON_EMPTY_TABLES = """select quote_ident(relname) from pg_class
             where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'alembic_version'
               and pg_relation_size(oid) > 0"""


environment_lock = RLock()
"""Held while the environment changes, and while the background connects.

libpq reads the environment without holding the GIL. If a test changes it at that moment, it may be moved in memory, and
the process crashes.
"""


def _locked(change: Callable[..., None]) -> Callable[..., None]:
    @wraps(change)
    def locked(*arguments: Any) -> None:
        with environment_lock:
            change(*arguments)

    return locked


# os.environ calls these two. The name is looked up at each call.
os.putenv, os.unsetenv = _locked(os.putenv), _locked(os.unsetenv)


def _connect(url: str, **options: Any) -> psycopg.Connection:
    with environment_lock:
        return psycopg.connect(url, **options)


class Databases:
    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._template = f"mizan_template_{uuid4().hex[:8]}"
        self._background = ThreadPoolExecutor(1, "databases")
        self._ready: list[Future[str | None]] = []
        self._names: set[str] = set()
        self._execute(f'create database "{self._template}" owner {OWNER}')
        migrate(self.url(self._template))
        with _connect(self.admin_url(self._template)) as connection:
            self._schema = connection.execute(_SCHEMA).fetchall()
            self._clock = str(_one(connection, "select pg_get_functiondef('mizan_now'::regproc)"))

    def take(self) -> str:
        """Return the name of an empty database."""
        while self._ready:
            with suppress(psycopg.Error):  # the last test killed the server meanwhile
                if name := self._ready.pop(0).result():
                    return name
        return self._copy()

    def give_back(self, name: str) -> None:
        """Empty the database in the background, for another test."""
        self._ready.append(self._background.submit(self._empty, name))
        if len(self._ready) == 1:  # so that no test has to wait for it to be emptied
            self._ready.insert(0, self._background.submit(self._copy))

    def drop(self, name: str) -> None:
        self._execute(f'drop database if exists "{name}" with (force)')
        self._names.discard(name)

    def close(self) -> None:
        self._background.shutdown()
        for name in [*self._names, self._template]:
            self.drop(name)

    def url(self, name: str) -> str:
        """Return the address of a database for its owner, the role of migrations."""
        return url_as(OWNER, self._server_url, name)

    def admin_url(self, name: str) -> str:
        """Return the address of a database for the superuser."""
        parts = conninfo_to_dict(self._server_url)
        password = f":{parts['password']}" if parts.get("password") else ""
        return f"postgresql://{parts['user']}{password}@{parts['host']}:{parts['port']}/{name}"

    def _copy(self) -> str:
        name = self._new_name()
        self._execute(
            f'create database "{name}" template "{self._template}" owner {OWNER}',
            # Rights on the database itself are not copied.
            f'revoke all on database "{name}" from public',
            f'grant connect on database "{name}" to {", ".join(role.name for role in SERVICE_ROLES)}',
        )
        return name

    def _empty(self, name: str) -> str | None:
        """Return its new name, unknown to whatever the test left running, or None if it had to be dropped."""
        try:
            new = self._rename(name)
            with _connect(self.admin_url(new), options="-c lock_timeout=5s") as connection:
                if connection.execute(_SCHEMA).fetchall() == self._schema:
                    self._truncate(connection)
                    return new
        except psycopg.Error:
            new = name
        self.drop(new)
        return None

    def _rename(self, name: str) -> str:
        new = self._new_name()
        with _connect(self._server_url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s", (name,)
            )
            connection.execute(f'alter database "{name}" rename to "{new}"'.encode())
        self._names.discard(name)
        return new

    def _truncate(self, connection: psycopg.Connection) -> None:
        # A trigger protects the audit log from being emptied.
        connection.execute("set local session_replication_role = replica")
        if filled := [name for (name,) in connection.execute(_NON_EMPTY_TABLES)]:
            connection.execute(f"truncate {', '.join(filled)} restart identity cascade".encode())
        connection.execute("select setval(seqrelid, seqstart, false) from pg_sequence")
        connection.execute("select pg_stat_reset()")
        connection.execute(self._clock.encode())

    def _new_name(self) -> str:
        name = f"mizan_{uuid4().hex[:12]}"
        self._names.add(name)
        return name

    def _execute(self, *statements: str) -> None:
        with _connect(self._server_url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


def _one(connection: psycopg.Connection, query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


_TABLES = """
select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
and not relispartition and relname <> 'audit_log' order by relname"""


_ROWS = "select to_jsonb(r)::text from {} as r order by 1"
_SESSIONS = (
    "select (to_jsonb(r) - 'last_seen_at' - 'expires_at')::text || (expires_at > mizan_now()) from {} as r"
)


def read_all_rows(database: Database) -> dict[str, list[str]]:
    """Return every row of every table but the audit log; of a session whether it has ended, not when it was used."""
    with database.cursor() as cursor:
        tables = [table for (table,) in cursor.execute(_TABLES.encode()).fetchall()]
        found = {}
        for table in tables:
            query = _SESSIONS if table == "sessions" else _ROWS
            found[table] = [row for (row,) in cursor.execute(query.format(table).encode()).fetchall()]
        return found

"""The shop's database: one SQLite file, which survives a killed process."""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_BUSY_S = 10.0
_VERSION = 1
"""The version of the tables. Raise it with every change to them."""
_TABLES = f"""
begin immediate;
create table if not exists orders (
    number integer primary key autoincrement,
    id text not null unique,            -- unguessable: anyone who knows it may see the order
    amount integer not null,
    currency text not null,
    lang text not null,
    lines text not null,
    placed_at real not null,
    fulfilled_at real,                  -- set once
    fulfilled_by text                   -- the payment's reference
);
create table if not exists payments (
    reference text primary key,         -- our merchant_reference: Mizan's idempotency key
    order_id text not null references orders (id),
    amount integer not null,
    currency text not null,
    uuid text unique,                   -- of the intent; null until Mizan has responded
    status text not null,
    checkout_url text,
    expires_at real,
    canceled_at real,                   -- when we learned of it; checks for late payments start then
    asked integer not null default 0,   -- failed checks in a row, for the delay until the next
    ask_at real                         -- time of the next check; null: none
);
create index if not exists payments_of_order on payments (order_id);
create index if not exists payments_to_ask on payments (ask_at) where ask_at is not null;
create table if not exists inbox (
    id text primary key,                -- of the delivery; detects duplicates
    event text not null,
    uuid text not null,
    received_at real not null,
    tried integer not null default 0,
    work_at real                        -- when to process it; null: done
);
create index if not exists inbox_to_do on inbox (work_at) where work_at is not null;
create table if not exists journal (
    id integer primary key,
    order_id text not null references orders (id),
    reference text not null,
    step text not null,
    at real not null,
    detail text not null
);
create index if not exists journal_of_order on journal (order_id, id);
create table if not exists requests_seen (
    id integer primary key,
    at real not null,
    headers text not null,
    body text not null,
    verdict text not null,
    answer integer not null
);
create table if not exists webhook_secrets (secret text primary key, since real not null);
create table if not exists notes (name text primary key, value text not null);
pragma user_version = {_VERSION};
commit;
"""


class DatabaseVersionError(Exception):
    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is of another version of the shop; move it away to start with a new one")


class Database:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        # Private from the start: it holds webhook secrets and the key that signs cookies.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(self._connect()) as connection:
            # One statement, because another process may be creating the tables now.
            version, is_new = connection.execute(
                "select user_version, not exists (select 1 from sqlite_master) from pragma_user_version"
            ).fetchone()
            if not is_new and version != _VERSION:
                raise DatabaseVersionError(path)
            connection.execute("pragma journal_mode = wal")
            if is_new:
                connection.executescript(_TABLES)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a durable transaction: what we acknowledged with 2xx must not be lost."""
        with closing(self._connect()) as connection:
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                connection.rollback()
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read from one snapshot, without blocking anyone."""
        with closing(self._connect()) as connection:
            connection.execute("begin")
            yield connection

    def check(self) -> None:
        """Raise sqlite3.Error if the file cannot be written to."""
        with self.transaction():
            pass

    def secret_key(self) -> str:
        """Return the key that signs cookies. It is created at the first start."""
        with self.transaction() as connection:
            connection.execute(
                "insert into notes values ('secret_key', ?) on conflict do nothing", (secrets.token_hex(32),)
            )
            (key,) = connection.execute("select value from notes where name = 'secret_key'").fetchone()
        return str(key)

    def _connect(self) -> sqlite3.Connection:
        """Open a connection for one use, so that threads and processes share none."""
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("pragma synchronous = full")
            connection.execute("pragma foreign_keys = on")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

"""The ledger: charges, checked codes and notifications in one SQLite file. No card, phone or code is stored."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from sqlite3 import Connection, Row
from threading import Lock

from services.sandbox.charges import Charge, ChargeNotification
from services.sandbox.scripted_outcomes import ChargeResult, ChargeStatus, DeclineReason, ScriptedOutcome
from shared.domain.payment_methods import PaymentMethod

_BUSY_TIMEOUT_S = 5.0

TABLES = """
create table if not exists charges (
    number integer primary key,
    id text not null unique,
    attempt text not null unique,
    intent text not null,
    method text not null,
    amount integer not null,
    currency text not null,
    notify_url text not null,
    script text not null,
    status text not null,
    reason text,
    created_at text not null,
    updated_at text not null
) strict;
create index if not exists charges_of_intent on charges (intent);

create table if not exists judged_codes (
    charge text not null references charges (id),
    number integer not null,
    status text not null,
    reason text,
    at text not null,
    primary key (charge, number)
) strict, without rowid;

create table if not exists notifications (
    number integer primary key,
    id text not null unique,
    charge text not null references charges (id),
    url text not null,
    body text not null,
    state text not null default 'pending' check (state in ('pending', 'delivered', 'given_up'))
) strict;
create index if not exists notifications_pending on notifications (number) where state = 'pending';
"""


class LedgerTransaction:
    """Queries and updates inside one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute

    def add_charge(self, charge: Charge) -> None:
        self._execute(
            """insert into charges (id, attempt, intent, method, amount, currency, notify_url,
                                    script, status, reason, created_at, updated_at)
               values (:id, :attempt, :intent, :method, :amount, :currency, :notify_url,
                       :script, :status, :reason, :created_at, :updated_at)""",
            asdict(charge),
        )

    def find_charge(self, charge_id: str) -> Charge | None:
        return _first_charge(self._execute("select * from charges where id = ?", (charge_id,)))

    def find_charge_of_attempt(self, attempt: str) -> Charge | None:
        return _first_charge(self._execute("select * from charges where attempt = ?", (attempt,)))

    def find_charges_of_intent(self, intent: str) -> list[Charge]:
        """Return the charges of an intent, oldest first."""
        rows = self._execute("select * from charges where intent = ? order by number", (intent,))
        return [_parse_charge(row) for row in rows]

    def find_charges_after(self, attempt: str, limit: int) -> list[Charge]:
        """Return charges whose attempt sorts after `attempt`, ordered by attempt."""
        rows = self._execute(
            "select * from charges where attempt > ? order by attempt limit ?", (attempt, limit)
        )
        return [_parse_charge(row) for row in rows]

    def update_charge(self, charge_id: str, result: ChargeResult, at: str) -> None:
        self._execute(
            "update charges set status = ?, reason = ?, updated_at = ? where id = ?",
            (result.status, result.reason, at, charge_id),
        )

    def add_judged_code(self, charge_id: str, number: int, result: ChargeResult, at: str) -> None:
        self._execute(
            "insert into judged_codes (charge, number, status, reason, at) values (?, ?, ?, ?, ?)",
            (charge_id, number, result.status, result.reason, at),
        )

    def find_judged_code(self, charge_id: str, number: int) -> tuple[ChargeResult, str] | None:
        """Return the result of the code with this number and its time, or None."""
        row = self._execute(
            "select * from judged_codes where charge = ? and number = ?", (charge_id, number)
        ).fetchone()
        return (_parse_result(row), row["at"]) if row else None

    def add_notification(self, notification: ChargeNotification) -> None:
        self._execute(
            "insert into notifications (id, charge, url, body) values (:id, :charge, :url, :body)",
            asdict(notification),
        )

    def find_pending(self) -> list[ChargeNotification]:
        """Return notifications that were neither delivered nor given up, oldest first."""
        rows = self._execute(
            "select id, charge, url, body from notifications where state = 'pending' order by number"
        )
        return [ChargeNotification(**dict(row)) for row in rows]

    def mark_delivered(self, notification_id: str) -> None:
        self._execute("update notifications set state = 'delivered' where id = ?", (notification_id,))

    def mark_given_up(self, notification_id: str) -> None:
        self._execute("update notifications set state = 'given_up' where id = ?", (notification_id,))


def _first_charge(rows: Iterable[Row]) -> Charge | None:
    return next((_parse_charge(row) for row in rows), None)


def _parse_charge(row: Row) -> Charge:
    result = _parse_result(row)
    return Charge(
        id=row["id"],
        attempt=row["attempt"],
        intent=row["intent"],
        method=PaymentMethod(row["method"]),
        amount=row["amount"],
        currency=row["currency"],
        notify_url=row["notify_url"],
        script=ScriptedOutcome(row["script"]),
        status=result.status,
        reason=result.reason,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _parse_result(row: Row) -> ChargeResult:
    return ChargeResult(ChargeStatus(row["status"]), DeclineReason(row["reason"]) if row["reason"] else None)


class LedgerUnavailableError(Exception):
    """The file cannot be opened or created."""


class Ledger:
    """One connection, shared by threads one at a time. It must not cross a fork.

    Raises LedgerUnavailableError if the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._lock = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _open(path)
        except (OSError, sqlite3.Error) as error:
            raise LedgerUnavailableError(f"the ledger {path} cannot be used: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[LedgerTransaction]:
        """Run an exclusive transaction, which also waits for another process that is still stopping."""
        with self._lock:
            self._connection.execute("begin immediate")
            try:
                yield LedgerTransaction(self._connection)
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    def check(self) -> None:
        """Check that the ledger can be written to."""
        with self.transaction():
            pass

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        # In this mode a killed process loses no committed data. Only a power failure could.
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(TABLES)
    except sqlite3.Error:
        connection.close()
        raise
    return connection

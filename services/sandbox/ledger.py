"""The ledger: one SQLite file, which a killed process leaves whole."""

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
    """Inside of one transaction."""

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
        return _only(self._execute("select * from charges where id = ?", (charge_id,)))

    def find_charge_of_attempt(self, attempt: str) -> Charge | None:
        return _only(self._execute("select * from charges where attempt = ?", (attempt,)))

    def find_charges_of_intent(self, intent: str) -> list[Charge]:
        """Oldest first."""
        rows = self._execute("select * from charges where intent = ? order by number", (intent,))
        return [_charge(row) for row in rows]

    def find_charges_after(self, attempt: str, most: int) -> list[Charge]:
        """In the order of their attempts."""
        rows = self._execute(
            "select * from charges where attempt > ? order by attempt limit ?", (attempt, most)
        )
        return [_charge(row) for row in rows]

    def move_charge(self, charge_id: str, standing: ChargeResult, at: str) -> None:
        self._execute(
            "update charges set status = ?, reason = ?, updated_at = ? where id = ?",
            (standing.status, standing.reason, at, charge_id),
        )

    def add_judged_code(self, charge_id: str, number: int, standing: ChargeResult, at: str) -> None:
        self._execute(
            "insert into judged_codes (charge, number, status, reason, at) values (?, ?, ?, ?, ?)",
            (charge_id, number, standing.status, standing.reason, at),
        )

    def find_judged_code(self, charge_id: str, number: int) -> tuple[ChargeResult, str] | None:
        """What the code with this number came to, and when."""
        row = self._execute(
            "select * from judged_codes where charge = ? and number = ?", (charge_id, number)
        ).fetchone()
        return (_standing(row), row["at"]) if row else None

    def add_notification(self, notification: ChargeNotification) -> None:
        self._execute(
            "insert into notifications (id, charge, url, body) values (:id, :charge, :url, :body)",
            asdict(notification),
        )

    def find_pending(self) -> list[ChargeNotification]:
        """Those that were neither delivered nor given up, oldest first."""
        rows = self._execute(
            "select id, charge, url, body from notifications where state = 'pending' order by number"
        )
        return [ChargeNotification(**dict(row)) for row in rows]

    def mark_delivered(self, notification_id: str) -> None:
        self._execute("update notifications set state = 'delivered' where id = ?", (notification_id,))

    def mark_given_up(self, notification_id: str) -> None:
        self._execute("update notifications set state = 'given_up' where id = ?", (notification_id,))


def _only(rows: Iterable[Row]) -> Charge | None:
    return next((_charge(row) for row in rows), None)


def _charge(row: Row) -> Charge:
    standing = _standing(row)
    return Charge(
        id=row["id"],
        attempt=row["attempt"],
        intent=row["intent"],
        method=PaymentMethod(row["method"]),
        amount=row["amount"],
        currency=row["currency"],
        notify_url=row["notify_url"],
        script=ScriptedOutcome(row["script"]),
        status=standing.status,
        reason=standing.reason,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _standing(row: Row) -> ChargeResult:
    return ChargeResult(ChargeStatus(row["status"]), DeclineReason(row["reason"]) if row["reason"] else None)


_BUSY_S = 5.0


class LedgerUnavailableError(Exception):
    """The file cannot be opened or made."""


class Ledger:
    """One connection that threads take turns with. Not to be carried over a fork."""

    def __init__(self, path: Path) -> None:
        self._turn = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _open(path)
        except (OSError, sqlite3.Error) as error:
            raise LedgerUnavailableError(f"the ledger {path} cannot be used: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[LedgerTransaction]:
        """All or nothing, and alone: also beside a process that has just been told to end."""
        with self._turn:
            self._connection.execute("begin immediate")
            try:
                yield LedgerTransaction(self._connection)
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    def check(self) -> None:
        """That it can be written to."""
        with self.transaction():
            pass

    def close(self) -> None:
        with self._turn:
            self._connection.close()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        # In this mode a kill loses nothing that was committed; only a power failure could.
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(TABLES)
    except sqlite3.Error:
        connection.close()
        raise
    return connection

"""The outbox relay: publishes committed rows in order, and deletes them once Kafka has confirmed them.

The session of the active relay holds an advisory lock, and the others stand by. It selects the rows, produces them,
waits for the delivery reports and deletes them, all in this session: a relay that lost it has lost the lock, and
deletes nothing. A crash can publish rows twice; it never loses one.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any

import psycopg
from prometheus_client import Counter, Gauge
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.rows import class_row

from services.scheduler.quarantine import Quarantine
from shared.domain.outbox import CHANNEL
from shared.platform.database.connections import PooledConnection, connection_arguments, translate_outage
from shared.platform.database.statement_watchdog import StatementWatchdog
from shared.platform.kafka.producer import (
    ConfirmingProducer,
    NotConfirmedError,
    OutgoingRecord,
    raise_after,
)
from shared.platform.kafka.spans import trace_publishing
from shared.platform.settings import DatabaseSettings

_log = logging.getLogger(__name__)

ROWS = Counter("mizan_relay_rows", "Outbox rows published to Kafka")
QUARANTINED = Gauge(
    "mizan_relay_quarantined_keys", "Keys whose rows are held back because Kafka rejected one of them"
)

BATCH = 4000
# Any fixed number; the relay whose session holds this lock is the active one.
_RELAY_LOCK = 0x6D697A616E_01
_STALL_LIMIT_S = 15
"""PostgreSQL ends the session of a relay that does nothing for so long, and another takes over."""
_KEEP_ALIVE_EVERY_S = 5
_CONFIRM_LIMIT_S = 30
"""Then a new client sends the rows. One that has waited since all of Kafka was lost may wait for ever."""
_POLL_S = 0.25
"""How long rows wait whose transaction does not wake the relay. Nobody is told of a new intent, for example."""
_STANDBY_PAUSE_S = 0.5

_LISTEN = f"listen {CHANNEL}"
_LOCK = "select from pg_try_advisory_lock(%s) as has_it where has_it"
_COLUMNS = "id, topic, key, payload, trace, (select current_setting('transaction_read_only')::boolean) as is_read_only"
_SELECT_OLDEST = f"select {_COLUMNS} from outbox order by id limit %s"
_SELECT_OLDEST_NOT_QUARANTINED = f"""
select {_COLUMNS} from outbox
where not exists (select from unnest(%s::text[], %s::text[]) as quarantined (topic, key)
                  where quarantined.topic = outbox.topic and quarantined.key = outbox.key)
order by id limit %s"""
_DELETE = "delete from outbox where id = any(%s::bigint[])"


@dataclass(frozen=True, slots=True)
class OutboxRow:
    id: int
    topic: str
    key: str
    payload: str
    trace: str | None
    is_read_only: bool
    """Whether the session is. Then the row could not be deleted, and would be published again and again."""


class RelayStoppedError(Exception):
    """The process is stopping; rows that Kafka did not confirm stay in the outbox."""


class OutboxRelay:
    name = "relay"

    def __init__(self, settings: DatabaseSettings, producer: ConfirmingProducer, stop: Event) -> None:
        self._settings = settings
        self._producer = producer
        self._stop = stop
        self._session: PooledConnection | None = None
        self._is_active = False
        """Whether the session holds the lock."""
        self._watchdog = StatementWatchdog()
        # For what PostgreSQL does between two calls of the _WaitGuard, as for any transaction.
        self._limit_s = 2 * settings.statement_timeout_s + 1
        self._quarantine: Quarantine[tuple[str, str]] = Quarantine(
            "keys have rows that Kafka refuses", QUARANTINED
        )

    def run_once(self) -> float:
        """Publish a batch. If there is nothing to publish, wait a quarter of a second, or until somebody wakes us."""
        self._producer.poll()
        with translate_outage():
            session = self._open_session()
            started = monotonic()
            try:
                with self._watchdog.watching(session, self._limit_s):
                    self._is_active = self._is_active or _become_active(session.connection)
                    published = self._publish(session) if self._is_active else 0
            except BaseException:
                self._close_session()  # and with it the lock: another relay takes over while this one rests
                raise
            if not self._is_active:
                return _STANDBY_PAUSE_S
            if published == 0:
                # Dead rows that vacuum may not remove yet make polling an empty table slow: then poll less often.
                seconds = max(_POLL_S, 5 * (monotonic() - started))
                _wait_for_notification(session, min(seconds, _KEEP_ALIVE_EVERY_S))
        return 0

    def check(self) -> None:
        """Raise QuarantineNotEmptyError while Kafka refuses rows. For /readyz."""
        self._quarantine.check()

    def close(self) -> None:
        self._producer.close()
        self._watchdog.close()
        self._close_session()

    def _publish(self, session: PooledConnection) -> int:
        """Return how many rows were published."""
        rows = self._select_oldest(session.connection)
        if not rows:
            return 0
        if rows[0].is_read_only:
            raise ReadOnlySqlTransaction("PostgreSQL is a standby and accepts no writes")
        confirmed = self._send(rows, session)
        session.connection.execute(_DELETE, ([row.id for row in confirmed],))
        self._quarantine.release({(row.topic, row.key) for row in confirmed})
        ROWS.inc(len(confirmed))
        return len(confirmed)

    def _select_oldest(self, connection: psycopg.Connection[Any]) -> list[OutboxRow]:
        cursor = connection.cursor(row_factory=class_row(OutboxRow))
        quarantined = self._quarantine.held()
        if not quarantined:
            return cursor.execute(_SELECT_OLDEST, (BATCH,)).fetchall()
        topics, keys = zip(*quarantined, strict=True)
        return cursor.execute(_SELECT_OLDEST_NOT_QUARANTINED, (list(topics), list(keys), BATCH)).fetchall()

    def _send(self, rows: Sequence[OutboxRow], session: PooledConnection) -> Sequence[OutboxRow]:
        guard = _WaitGuard(session, self._watchdog, self._limit_s, self._stop)
        try:
            with trace_publishing(self._producer, [_outgoing(row) for row in rows]) as records:
                self._producer.send(records, on_wait=guard)
        except NotConfirmedError as error:
            for index, refusal in error.refused.items():
                self._quarantine.add((rows[index].topic, rows[index].key), refusal.str())
            _log.error("%s; these rows stay in the outbox and are retried", error)
            return _confirmed_in_order(rows, error)
        return rows

    def _open_session(self) -> PooledConnection:
        session = self._session
        if session is not None:
            session.released_at = monotonic()
            if session.is_reusable():
                return session
            self._close_session()
        arguments = connection_arguments(
            self._settings,
            self.name,
            # The table is empty one moment and full the next, so statistics mislead: always use the key.
            enable_seqscan="off",
            idle_session_timeout=f"{_STALL_LIMIT_S}s",
        )
        self._session = PooledConnection(psycopg.connect(self._settings.url, autocommit=True, **arguments))
        return self._session

    def _close_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session, self._is_active = None, False


def _become_active(connection: psycopg.Connection[Any]) -> bool:
    """Return False if another relay is active."""
    if not connection.execute(_LOCK, (_RELAY_LOCK,)).rowcount:
        return False
    connection.execute(_LISTEN)
    return True


def _wait_for_notification(session: PooledConnection, seconds: float) -> None:
    """Return at once if one has come while the session was busy."""
    for _ in session.connection.notifies(timeout=seconds, stop_after=1):
        pass


class _WaitGuard:
    """Called while the producer waits for Kafka: keeps the session alive.

    Raises RelayStoppedError at a stop, and KafkaUnavailableError if it takes too long.
    """

    def __init__(
        self, session: PooledConnection, watchdog: StatementWatchdog, limit_s: float, stop: Event
    ) -> None:
        self._session = session
        self._watchdog = watchdog
        self._limit_s = limit_s
        self._stop = stop
        self._next_at = monotonic() + _KEEP_ALIVE_EVERY_S
        self._raise_when_late = raise_after(_CONFIRM_LIMIT_S)

    def __call__(self) -> None:
        if self._stop.is_set():
            raise RelayStoppedError
        self._raise_when_late()
        self._watchdog.begin(self._session, self._limit_s)
        if monotonic() >= self._next_at:
            self._session.connection.execute("select 1")
            self._next_at = monotonic() + _KEEP_ALIVE_EVERY_S


def _outgoing(row: OutboxRow) -> OutgoingRecord:
    return OutgoingRecord(row.topic, row.key, row.payload, row.trace)


def _confirmed_in_order(rows: Sequence[OutboxRow], error: NotConfirmedError) -> list[OutboxRow]:
    """Return the confirmed rows without those that follow a refused row of their key: these are sent again after it."""
    refused_keys = set()
    confirmed = []
    for index, row in enumerate(rows):
        if index in error.refused:
            refused_keys.add((row.topic, row.key))
        elif (row.topic, row.key) not in refused_keys:
            confirmed.append(row)
    return confirmed

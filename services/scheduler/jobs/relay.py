"""The outbox relay: publishes committed rows in order, and deletes them once Kafka has confirmed them.

One transaction under an advisory lock selects the rows, produces them, waits for the delivery reports and deletes
them. So one relay is active, the others stand by, and a relay that lost its session deletes nothing. A crash can
publish rows twice; it never loses one.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any

import psycopg
from prometheus_client import Counter, Gauge
from psycopg.rows import class_row

from services.scheduler.quarantine import Quarantine
from shared.platform.database.connections import connection_arguments, translate_outage
from shared.platform.database.pool import fetch_scalar
from shared.platform.kafka.producer import ConfirmingProducer, NotConfirmedError, OutgoingRecord
from shared.platform.kafka.spans import trace_publishing
from shared.platform.settings import DatabaseSettings

_log = logging.getLogger(__name__)

ROWS = Counter("mizan_relay_rows", "Outbox rows published to Kafka")
QUARANTINED = Gauge(
    "mizan_relay_quarantined_keys", "Keys whose rows are held back because Kafka rejected one of them"
)

BATCH = 4000
# Any fixed number; the relay that holds this lock is the active one.
_RELAY_LOCK = 0x6D697A616E_01
# Well within IDLE_IN_TRANSACTION_S: a relay that stalls longer than that loses its session, and another takes over.
_KEEP_ALIVE_EVERY_S = 5
_SHORTEST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.04
_STANDBY_PAUSE_S = 0.5

_PEEK = "select from outbox limit 1"
_LOCK = "select pg_try_advisory_xact_lock(%s)"
_SELECT_OLDEST = "select id, topic, key, payload, trace from outbox order by id limit %s"
_SELECT_OLDEST_NOT_QUARANTINED = """
select id, topic, key, payload, trace from outbox
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


class RelayStoppedError(Exception):
    """The process is stopping; rows that Kafka did not confirm stay in the outbox."""


class OutboxRelay:
    name = "relay"

    def __init__(self, settings: DatabaseSettings, producer: ConfirmingProducer, stop: Event) -> None:
        self._settings = settings
        self._producer = producer
        self._stop = stop
        self._connection: psycopg.Connection[Any] | None = None
        self._pause_s = _SHORTEST_PAUSE_S
        self._quarantine: Quarantine[tuple[str, str]] = Quarantine(
            "keys have rows that Kafka refuses", QUARANTINED
        )

    def run_once(self) -> float:
        """Publish a batch. Run again at once after a full one; when the outbox is empty, pauses grow to 40 ms."""
        self._producer.poll()
        with translate_outage():
            connection = self._open_connection()
            started = monotonic()
            published = self._publish(connection) if connection.execute(_PEEK).rowcount else 0
        if published is None:
            return _STANDBY_PAUSE_S
        if published:
            self._pause_s = _SHORTEST_PAUSE_S
            return 0 if published == BATCH else self._pause_s
        # Dead rows that vacuum may not remove yet make polling an empty table slow: then poll less often.
        self._pause_s = min(_LONGEST_PAUSE_S, self._pause_s * 1.5)
        return max(self._pause_s, 5 * (monotonic() - started))

    def check(self) -> None:
        """Raise QuarantineNotEmptyError while Kafka refuses rows. For /readyz."""
        self._quarantine.check()

    def close(self) -> None:
        self._producer.close()
        if self._connection is not None:
            self._connection.close()

    def _publish(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return how many rows were published; None if another relay is the active one."""
        with connection.transaction():
            if not fetch_scalar(connection, _LOCK, (_RELAY_LOCK,)):
                return None
            rows = self._select_oldest(connection)
            confirmed = self._send(rows, connection)
            connection.execute(_DELETE, ([row.id for row in confirmed],))
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

    def _send(self, rows: Sequence[OutboxRow], connection: psycopg.Connection[Any]) -> Sequence[OutboxRow]:
        try:
            with trace_publishing(self._producer, [_outgoing(row) for row in rows]) as records:
                self._producer.send(records, on_wait=_WaitGuard(connection, self._stop))
        except NotConfirmedError as error:
            for index, refusal in error.refused.items():
                self._quarantine.add((rows[index].topic, rows[index].key), refusal.str())
            _log.error("%s; these rows stay in the outbox and are retried", error)
            return _confirmed_in_order(rows, error)
        return rows

    def _open_connection(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            arguments = connection_arguments(
                self._settings,
                self.name,
                # The table is empty one moment and full the next, so statistics mislead: always use the key.
                enable_seqscan="off",
            )
            self._connection = psycopg.connect(self._settings.url, autocommit=True, **arguments)
        return self._connection


class _WaitGuard:
    """Called while the producer waits for Kafka: keeps the session alive, raises RelayStoppedError at a stop."""

    def __init__(self, connection: psycopg.Connection[Any], stop: Event) -> None:
        self._connection = connection
        self._stop = stop
        self._next_at = monotonic() + _KEEP_ALIVE_EVERY_S

    def __call__(self) -> None:
        if self._stop.is_set():
            raise RelayStoppedError
        if monotonic() >= self._next_at:
            self._connection.execute("select 1")
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

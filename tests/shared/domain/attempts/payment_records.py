"""Reads intents and attempts from the database and checks that they are consistent."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from shared.domain.intents.states import TRANSITIONS, EventType, IntentStatus
from shared.domain.messages import IntentEvent, decode
from shared.platform.database.pool import Database

_STATE_OF_EVENT = {
    EventType.CREATED: IntentStatus.REQUIRES_PAYMENT_METHOD,
    EventType.REQUIRES_PAYMENT_METHOD: IntentStatus.REQUIRES_PAYMENT_METHOD,
    EventType.PROCESSING: IntentStatus.PROCESSING,
    EventType.SUCCEEDED: IntentStatus.SUCCEEDED,
    EventType.CANCELED: IntentStatus.CANCELED,
}
_STEPS = {(before, after) for (before, _), after in TRANSITIONS.items() if before != after}


@dataclass(frozen=True)
class IntentRow:
    uuid: UUID
    status: str
    event_seq: int
    expires_at: datetime


@dataclass(frozen=True)
class AttemptRow:
    id: UUID
    intent_uuid: UUID
    provider: str
    state: str
    provider_requests: int
    next_verify_at: datetime | None


class PaymentRecords:
    """The rows as of the last read()."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.intents: list[IntentRow] = []
        self.attempts: list[AttemptRow] = []

    def read(self) -> None:
        with self._database.cursor() as cursor:
            connection = cursor.connection
            self.intents = (
                connection.cursor(row_factory=class_row(IntentRow))
                .execute("select uuid, status, event_seq, expires_at from payment_intents order by uuid")
                .fetchall()
            )
            self.attempts = (
                connection.cursor(row_factory=class_row(AttemptRow))
                .execute(
                    """select id, intent_uuid, provider, state, provider_requests, next_verify_at
                       from payment_attempts order by id"""
                )
                .fetchall()
            )

    def open_intents(self) -> list[UUID]:
        """Return the intents that can still be paid."""
        over = (IntentStatus.SUCCEEDED, IntentStatus.CANCELED)
        return [intent.uuid for intent in self.intents if intent.status not in over]

    def in_state(self, *states: str, intent: UUID | None = None) -> list[AttemptRow]:
        return [
            attempt
            for attempt in self.attempts
            if attempt.state in states and intent in (None, attempt.intent_uuid)
        ]

    def intent_of(self, attempt: UUID) -> UUID:
        (row,) = [row for row in self.attempts if row.id == attempt]
        return row.intent_uuid

    def check_events(self) -> None:
        """Every change has exactly one event and one message, in order; nothing else has."""
        logged: dict[UUID, list[Any]] = defaultdict(list)
        for intent, *event in self._query(
            "select intent_uuid, id, seq, type, at from intent_events order by id"
        ):
            logged[intent].append(event)
        sent: dict[UUID, list[Any]] = defaultdict(list)
        for (payload,) in self._query("select payload from outbox order by id"):
            message = decode(payload.encode())
            assert isinstance(message, IntentEvent)
            sent[message.intent_uuid].append([message.id, message.seq, message.type, message.at])
        assert logged == sent
        for intent in self.intents:
            _check_events_of(intent, logged[intent.uuid])

    def check_attempts(self) -> None:
        """Intents and attempts agree: one open at a time, one paid, processing exactly while one is in flight."""
        for intent in self.intents:
            states = [attempt.state for attempt in self.attempts if attempt.intent_uuid == intent.uuid]
            in_flight = sum(state in ("sent", "unknown") for state in states)
            awaiting = sum(state.startswith("awaiting") for state in states)
            succeeded = intent.status == IntentStatus.SUCCEEDED
            assert in_flight + awaiting <= 1
            assert states.count("paid") == succeeded
            assert "duplicate" not in states or succeeded
            assert in_flight == (intent.status == IntentStatus.PROCESSING) or succeeded

    def _query(self, query: str) -> list[Any]:
        with self._database.cursor() as cursor:
            return cursor.execute(query.encode()).fetchall()


def _check_events_of(intent: IntentRow, events: list[Any]) -> None:
    assert [seq for _, seq, _, _ in events] == list(range(1, intent.event_seq + 1))
    states = [_STATE_OF_EVENT[EventType(type_)] for _, _, type_, _ in events]
    assert states[-1] == intent.status
    assert set(zip([None, *states], states, strict=False)) <= _STEPS
    times = [at for *_, at in events]
    assert times == sorted(times)
    if intent.status == IntentStatus.REQUIRES_PAYMENT_METHOD:
        assert times[-1] < intent.expires_at, "came back after its time, and was not canceled at once"

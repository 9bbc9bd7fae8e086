"""One payment with all that happened to it."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import IntentStatus

MOST = 200
"""Of each kind: nobody reads more, and a robot at the checkout must not make a page endless."""

_EARLIER_MS = 3_600_000
"""Events are made after their intent. An hour is more than clocks differ, and spares looking at older months."""

_INTENT = """
select uuid, merchant_reference, reference, amount, currency, status, description, customer_external_id, return_url,
       metadata::text as metadata, expires_at, created_at, updated_at
from payment_intents where uuid = %(intent)s and application_id = %(application)s"""
_ATTEMPTS = f"""
select id, method, provider, state, reason, provider_reference, created_at, updated_at, handled_at
from payment_attempts
where intent_uuid = %(intent)s order by id desc limit {MOST}"""
_EVENTS = f"""
select seq, type, at from intent_events
where intent_uuid = %(intent)s and id >= %(since)s order by seq desc limit {MOST}"""
_DELIVERIES = f"""
select id, event, status, tries, last_status_code, next_due_at, created_at from webhook_deliveries
where intent_uuid = %(intent)s and application_id = %(application)s and id >= %(since)s
order by id desc limit {MOST}"""


@dataclass(frozen=True, slots=True)
class Facts:
    uuid: UUID
    merchant_reference: str
    reference: str
    amount: int
    currency: str
    status: str
    description: str | None
    customer_external_id: str | None
    return_url: str | None
    metadata: str | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime

    @property
    def readable_metadata(self) -> str:
        """As it was sent, a line for each name. Empty where there is none."""
        if self.metadata is None:
            return ""
        return json.dumps(json.loads(self.metadata), indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    id: UUID
    method: str
    provider: str
    state: str
    reason: str | None
    provider_reference: str | None
    created_at: datetime
    updated_at: datetime
    handled_at: datetime | None = None
    """Of a second payment: when an operator said that it was seen to."""


@dataclass(frozen=True, slots=True)
class Event:
    seq: int
    type: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    id: UUID
    event: str
    status: str
    tries: int
    last_status_code: int | None
    next_due_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PaymentInFull:
    facts: Facts
    attempts: list[Attempt]
    """Oldest first, and so are the others."""
    events: list[Event]
    deliveries: list[Delivery]

    @property
    def duplicates(self) -> int:
        """Second payments that nobody has handled yet."""
        return sum(
            attempt.state == AttemptState.DUPLICATE and attempt.handled_at is None
            for attempt in self.attempts
        )

    @property
    def is_open(self) -> bool:
        return self.facts.status in (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.PROCESSING)

    @property
    def is_cut(self) -> bool:
        """There is more than the page tells."""
        return any(len(rows) == MOST for rows in (self.attempts, self.events, self.deliveries))


def find_payment(connection: Connection[Any], application_id: UUID, intent: UUID) -> PaymentInFull | None:
    values = {"application": application_id, "intent": intent, "since": _floor(intent)}
    with connection.cursor(row_factory=class_row(Facts)) as cursor:
        facts = cursor.execute(_INTENT, values).fetchone()
    if facts is None:
        return None
    with connection.cursor(row_factory=class_row(Attempt)) as cursor:
        attempts = cursor.execute(_ATTEMPTS, values).fetchall()
    with connection.cursor(row_factory=class_row(Event)) as cursor:
        events = cursor.execute(_EVENTS, values).fetchall()
    with connection.cursor(row_factory=class_row(Delivery)) as cursor:
        deliveries = cursor.execute(_DELIVERIES, values).fetchall()
    return PaymentInFull(facts, attempts[::-1], events[::-1], deliveries[::-1])


def _floor(intent: UUID) -> UUID:
    made_ms = intent.int >> 80
    return UUID(int=max(0, made_ms - _EARLIER_MS) << 80)

"""A merchant with an endpoint: creates events, and reads what was recorded of its webhooks."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from psycopg import Cursor
from psycopg.rows import class_row

from services.webhooks.pipeline.intake import create_deliveries
from shared.domain.applications.registry import (
    CreatedApplication,
    NewApplication,
    create_application,
    set_webhook_url,
)
from shared.domain.applications.webhook_secrets import roll_webhook_secret
from shared.domain.deliveries.resend import request_resend
from shared.domain.deliveries.try_results import EVENTS
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.states import IntentTrigger
from shared.domain.intents.store import apply_trigger, create_or_find, expire_due
from shared.domain.messages import DeliveryDue, IntentEvent, decode
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import check_webhook_url
from tests.webhooks.receivers import Receiver

_orders = count(1)
_FALL_DUE = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select %s, 'due-' || uuidv7(), uuidv7(), 25000, 'LYD', mizan_now() from generate_series(1, %s)"""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    id: UUID
    event: str
    url: str
    secret_version: int
    status: str
    tries: int
    step: int
    next_due_at: datetime | None
    last_status_code: int | None
    last_failure: str | None
    set_aside_at: datetime | None


@dataclass(frozen=True, slots=True)
class TryRow:
    number: int
    step: int | None
    resend_id: UUID | None
    at: datetime
    duration_ms: int
    url: str
    status_code: int | None
    failure: str | None
    response_body: bytes | None


class Merchant:
    def __init__(self, database: Database, box: SecretBox, url: str | None) -> None:
        self._database = database
        self._box = box
        checked = None if url is None else check_webhook_url(url, allow_private=True)
        with database.transaction() as connection:
            self.application: CreatedApplication = create_application(
                connection, box, NewApplication("shop", webhook_url=checked)
            )
        self.secret = self.application.webhook_secret

    @property
    def id(self) -> UUID:
        return self.application.id

    def create_event(self, trigger: IntentTrigger = IntentTrigger.PAYMENT_CONFIRMED) -> UUID:
        """Create an intent and change its state. Returns the id of that event, which is also its delivery's."""
        new = NewIntent(self.id, f"order-{next(_orders)}", 1_000, "LYD")
        with self._database.transaction() as connection:
            intent = create_or_find(connection.cursor(), new)[0].uuid
            apply_trigger(connection, intent, trigger)
            row = connection.execute(
                "select id from intent_events where intent_uuid = %s order by seq desc limit 1", (intent,)
            ).fetchone()
        assert row is not None
        return UUID(str(row[0]))

    def create_events(self, count: int) -> None:
        """Let this many intents expire at once."""
        with self._database.transaction() as connection:
            connection.execute(_FALL_DUE, (self.id, count))
            while expire_due(connection.cursor()):
                pass

    def set_url(self, url: str | None) -> None:
        with self._database.transaction() as connection:
            set_webhook_url(
                connection, self.id, None if url is None else check_webhook_url(url, allow_private=True)
            )

    def roll_secret(self) -> str:
        with self._database.transaction() as connection:
            self.secret = roll_webhook_secret(connection, self._box, self.id).text
        return self.secret

    def resend(self, delivery_id: UUID, resend_id: UUID | None = None) -> UUID:
        resend_id = resend_id or uuid4()
        with self._database.transaction() as connection:
            request_resend(connection, delivery_id, resend_id)
        return resend_id

    def delivery(self, delivery_id: UUID) -> DeliveryRow | None:
        with self._database.transaction() as connection:
            cursor = connection.cursor(row_factory=class_row(DeliveryRow))
            return cursor.execute(
                """select id, event, url, secret_version, status, tries, step, next_due_at, last_status_code,
                          last_failure, set_aside_at
                   from webhook_deliveries where id = %s""",
                (delivery_id,),
            ).fetchone()

    def status(self, delivery_id: UUID) -> str | None:
        delivery = self.delivery(delivery_id)
        return None if delivery is None else delivery.status

    def tries(self, delivery_id: UUID) -> list[TryRow]:
        with self._database.transaction() as connection:
            cursor = connection.cursor(row_factory=class_row(TryRow))
            return cursor.execute(
                """select number, step, resend_id, at, duration_ms, url, status_code, failure, response_body
                   from webhook_tries where delivery_id = %s order by number""",
                (delivery_id,),
            ).fetchall()

    def statuses(self) -> dict[str, int]:
        """Return the number of deliveries by status."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "select status, count(*) from webhook_deliveries where application_id = %s group by 1",
                (self.id,),
            ).fetchall()
        return {str(status): int(number) for status, number in rows}

    def execute(self, statement: str, *values: Any) -> None:
        with self._database.transaction() as connection:
            connection.execute(statement.encode(), values)


def is_signed(body: bytes, signature: str | None, secret: str) -> bool:
    """Verify a signature as a receiver does (§6.4), without any code of Mizan."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() == signature


def ids_in(receiver: Receiver) -> list[UUID]:
    """Return the ids of the deliveries that a receiver got, in order."""
    return [UUID(json.loads(request.body)["id"]) for request in receiver.requests]


def webhook_events(database: Database) -> list[IntentEvent]:
    """Return the events in the outbox that merchants receive, sorted by id."""
    with database.transaction() as connection:
        rows = connection.execute("select payload from outbox").fetchall()
    messages = [decode(payload.encode()) for (payload,) in rows]
    events = [m for m in messages if isinstance(m, IntentEvent) and m.type in EVENTS]
    return sorted(events, key=lambda event: event.id)


def first_tries(cursor: Cursor[Any], events: Sequence[IntentEvent]) -> list[DeliveryDue]:
    """Create the deliveries of these events, and return messages that request their first tries."""
    created = create_deliveries(cursor, events).values()
    return [
        DeliveryDue(UUID(one.id), UUID(one.application_id), 1, one.next_due_at)
        for one in sorted(created, key=lambda one: one.id)
        if one.next_due_at is not None
    ]

"""Intents that become due, for tests of expiry: created, changed, and counted when they are canceled."""

from typing import Any
from uuid import UUID

from shared.domain.intents.states import IntentStatus, IntentTrigger
from shared.domain.intents.store import apply_trigger
from shared.domain.messages import IntentEvent, decode
from shared.platform.database.pool import Database

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select uuidv7(), 'order-' || n, uuidv7(), 25000, 'LYD', mizan_now() + make_interval(secs => %s)
from generate_series(1, %s) as n returning uuid"""

_CHANGE_EXPIRY = (
    "update payment_intents set expires_at = mizan_now() + make_interval(secs => %s) where uuid = %s"
)
_LOGGED = "select id, intent_uuid, seq, at from intent_events where type = 'payment_intent.canceled'"


class Intents:
    """Intents of one merchant, inserted straight into the table, without their first event."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(self, count: int = 1, *, due_in_s: float = 0) -> list[UUID]:
        return [uuid for (uuid,) in self._query(_FILL, due_in_s, count)]

    def move(self, uuid: UUID, trigger: IntentTrigger) -> None:
        with self._database.transaction() as connection:
            apply_trigger(connection, uuid, trigger)

    def change_expiry(self, uuid: UUID, due_in_s: float) -> None:
        self._query(_CHANGE_EXPIRY, due_in_s, uuid)

    def count_events(
        self, uuid: UUID, event_seq: int, status: IntentStatus = IntentStatus.REQUIRES_PAYMENT_METHOD
    ) -> None:
        """Set the event number by hand. After the greatest possible number no event can follow."""
        self._query(
            "update payment_intents set event_seq = %s, status = %s where uuid = %s", event_seq, status, uuid
        )

    def count(self, status: IntentStatus) -> int:
        ((count,),) = self._query("select count(*) from payment_intents where status = %s", status)
        return int(count)

    def status(self, uuid: UUID) -> IntentStatus:
        ((status,),) = self._query("select status from payment_intents where uuid = %s", uuid)
        return IntentStatus(status)

    def cancellations(self) -> list[UUID]:
        """Return the canceled intents; event log and outbox must agree, so nothing may be published yet."""
        sent = [decode(payload.encode()) for (payload,) in self._query("select payload from outbox")]
        told = [m for m in sent if isinstance(m, IntentEvent) and m.type == "payment_intent.canceled"]
        assert sorted(self._query(_LOGGED)) == sorted((m.id, m.intent_uuid, m.seq, m.at) for m in told)
        return self.logged_cancellations()

    def logged_cancellations(self) -> list[UUID]:
        return [uuid for _, uuid, _, _ in self._query(_LOGGED)]

    def _query(self, query: str, *values: object) -> list[Any]:
        with self._database.cursor() as cursor:
            executed = cursor.execute(query.encode(), values)
            return executed.fetchall() if executed.description else []

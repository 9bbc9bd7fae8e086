"""Attempts whose outcome nobody knows: asked without an answer, or left on a provider's page and not come back from."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

_LIST = """
select t.id as attempt, t.intent_uuid as intent, i.reference, i.amount, t.method, t.provider,
       t.state, coalesce(t.sent_at, t.created_at) as since, t.verifications, t.next_verify_at
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.state = 'unknown'
   or t.state = 'awaiting_redirect' and t.created_at < mizan_now() - interval '15 minutes'
order by t.id limit %s"""


@dataclass(frozen=True, slots=True)
class Undecided:
    attempt: UUID
    intent: UUID
    reference: str
    """Of the intent, as the customer's receipt would show it."""
    amount: int
    method: str
    provider: str
    state: str
    since: datetime
    """When the provider was asked to charge, or the customer was sent to its page."""
    verifications: int
    """How often the provider has been asked."""
    next_verify_at: datetime | None
    """None: it cannot be asked, so that an operator has to decide."""


def list_undecided(connection: Connection[Any], limit: int = 1000) -> list[Undecided]:
    """The longest waiting first."""
    with connection.cursor(row_factory=class_row(Undecided)) as cursor:
        return cursor.execute(_LIST, (limit,)).fetchall()

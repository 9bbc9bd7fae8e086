"""Attempts whose outcome is unknown, and who asks about them: where nobody can, an operator decides."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

_LIST = """
select t.id as attempt, t.intent_uuid as intent, i.reference, i.amount, t.method, t.provider, t.sent_at,
       t.verifications, t.next_verify_at
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.state = 'unknown' order by t.sent_at limit %s"""


@dataclass(frozen=True, slots=True)
class Undecided:
    attempt: UUID
    intent: UUID
    reference: str
    """Of the intent, as the customer's receipt would show it."""
    amount: int
    method: str
    provider: str
    sent_at: datetime
    verifications: int
    """How often the provider has been asked."""
    next_verify_at: datetime | None
    """None: it cannot be asked, so that an operator has to decide."""


def list_undecided(connection: Connection[Any], limit: int = 1000) -> list[Undecided]:
    """The longest waiting first."""
    with connection.cursor(row_factory=class_row(Undecided)) as cursor:
        return cursor.execute(_LIST, (limit,)).fetchall()

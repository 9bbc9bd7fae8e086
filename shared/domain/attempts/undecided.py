"""Attempts whose outcome nobody knows: asked without an answer, or left on a provider's page and not come back from."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

# Of each state the oldest, from the index of those that are open, however many have been settled. Intents are looked
# up one by one, behind a fence, so that no plan reads all of them.
UNDECIDED_SQL = """
with undecided as materialized (
    (select * from payment_attempts where state = 'unknown' order by id limit %(limit)s)
    union all
    (select * from payment_attempts
     where state = 'awaiting_redirect' and created_at < mizan_now() - interval '15 minutes'
     order by id limit %(limit)s)
    order by id limit %(limit)s
)
select t.id as attempt, t.intent_uuid as intent, i.reference, i.amount, i.currency, t.method, t.provider,
       t.state, coalesce(t.sent_at, t.created_at) as since, t.verifications, t.next_verify_at,
       i.application_id, a.name as application, m.name as merchant
from undecided as t
cross join lateral (select * from payment_intents where uuid = t.intent_uuid offset 0) as i
left join applications as a on a.id = i.application_id
left join merchants as m on m.id = a.merchant_id
order by t.id"""


@dataclass(frozen=True, slots=True)
class UndecidedAttempt:
    attempt: UUID
    intent: UUID
    reference: str
    """Of the intent, as the customer's receipt would show it."""
    amount: int
    currency: str
    method: str
    provider: str
    state: str
    since: datetime
    """When the provider was asked to charge, or the customer was sent to its page."""
    verifications: int
    """How often the provider has been asked."""
    next_verify_at: datetime | None
    """None: it cannot be asked, so that an operator has to decide."""
    application_id: UUID
    application: str | None
    merchant: str | None


def list_undecided(connection: Connection[Any], limit: int = 1000) -> list[UndecidedAttempt]:
    """The longest waiting first."""
    with connection.cursor(row_factory=class_row(UndecidedAttempt)) as cursor:
        return cursor.execute(UNDECIDED_SQL, {"limit": limit}).fetchall()

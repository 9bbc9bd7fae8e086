"""Attempts without a known outcome: no answer to a request, or a customer who did not return from a provider's page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.platform.database.stable_plans import read_in_index_order

# The oldest of each state come from the index of open attempts, however many have been settled. `offset 0` makes
# PostgreSQL look up intents one by one, so that no plan reads all of them.
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
    """Reference of the intent, as on the customer's receipt."""
    amount: int
    currency: str
    method: str
    provider: str
    state: str
    since: datetime
    """When the request was sent, or the customer was redirected to the provider's page."""
    verifications: int
    """Number of status inquiries so far."""
    next_verify_at: datetime | None
    """When the next status inquiry is due. None if there is none: an operator has to decide."""
    application_id: UUID
    application: str | None
    merchant: str | None


def list_undecided(connection: Connection[Any], limit: int = 1000) -> list[UndecidedAttempt]:
    """Return undecided attempts, oldest first."""
    read_in_index_order(connection)
    with connection.cursor(row_factory=class_row(UndecidedAttempt)) as cursor:
        return cursor.execute(UNDECIDED_SQL, {"limit": limit}).fetchall()

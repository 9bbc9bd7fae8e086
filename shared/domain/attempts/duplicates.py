"""Duplicate payments: second payments on paid intents. An operator refunds them and marks them as handled."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.attempts.notes import clean_note
from shared.domain.attempts.settlement import AttemptNotFoundError
from shared.domain.attempts.states import AttemptState
from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.errors import RefusedError

# `materialized` and `offset 0` make PostgreSQL look up rows one by one, so that no plan reads all intents or attempts.
OPEN_DUPLICATES_SQL = """
with open as materialized (
    select * from payment_attempts where state = 'duplicate' and handled_at is null order by id limit %(limit)s
)
select d.id as attempt, d.intent_uuid as intent, i.reference, i.merchant_reference, i.amount, i.currency, d.method,
       d.provider, d.provider_reference, paid.provider_reference as first_reference, d.updated_at as at,
       i.application_id, a.name as application, m.name as merchant
from open as d
cross join lateral (select * from payment_intents where uuid = d.intent_uuid offset 0) as i
left join lateral (select provider_reference from payment_attempts
                   where intent_uuid = d.intent_uuid and state = 'paid' offset 0) as paid on true
left join applications as a on a.id = i.application_id
left join merchants as m on m.id = a.merchant_id
order by d.id"""
_LOCK = "select intent_uuid, state, handled_at from payment_attempts where id = %s for no key update"
_OWNER = "select application_id, reference from payment_intents where uuid = %s"
_HANDLE = "update payment_attempts set handled_at = mizan_now(), handled_note = %s where id = %s"


@dataclass(frozen=True, slots=True)
class DuplicatePayment:
    attempt: UUID
    intent: UUID
    reference: str
    """Reference of the intent, as on the customer's receipt."""
    merchant_reference: str
    amount: int
    """Amount to refund, in minor units."""
    currency: str
    method: str
    provider: str
    provider_reference: str | None
    """The provider's reference of this payment."""
    first_reference: str | None
    """The provider's reference of the first payment, which counts."""
    at: datetime
    application_id: UUID
    application: str | None
    merchant: str | None


class NotDuplicateError(RefusedError):
    def __init__(self, state: AttemptState) -> None:
        super().__init__(f"the attempt is not a duplicate payment: it is {state}")
        self.state = state


def list_open_duplicates(connection: Connection[Any], limit: int = 1000) -> list[DuplicatePayment]:
    """Return the duplicate payments that nobody has handled, oldest first."""
    read_in_index_order(connection)
    with connection.cursor(row_factory=class_row(DuplicatePayment)) as cursor:
        return cursor.execute(OPEN_DUPLICATES_SQL, {"limit": limit}).fetchall()


def mark_handled(connection: Connection[Any], attempt: UUID, note: str, actor: Actor) -> bool:
    """Mark a duplicate payment as handled; `note` says what was done. The merchant's audit log shows it.

    Returns False if it was handled before. Raises AttemptNotFoundError, NotDuplicateError or InvalidNoteError.
    """
    row = connection.execute(_LOCK, (attempt,)).fetchone()
    if row is None:
        raise AttemptNotFoundError(attempt)
    intent, state, handled_at = row
    if state != AttemptState.DUPLICATE:
        raise NotDuplicateError(AttemptState(state))
    if handled_at is not None:
        return False
    cleaned = clean_note(note, "note")
    connection.execute(_HANDLE, (cleaned, attempt))
    application_id, reference = connection.execute(_OWNER, (intent,)).fetchone() or (None, None)
    details: AuditDetails = {
        "attempt": str(attempt),
        "payment": str(intent),
        "reference": reference,
        "note": cleaned,
    }
    add_audit_entry(
        connection, actor, Action.DUPLICATE_HANDLED, application_id=application_id, details=details
    )
    return True

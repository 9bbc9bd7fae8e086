"""The one room that writes payment intents: a change, its event and its outbox row, in one transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.db.prepared import Prepared, Row
from shared.intents.reference import new_reference
from shared.intents.states import State, Trigger, event_of, move
from shared.topics import PAYMENT_INTENT_EVENTS


@dataclass(frozen=True, slots=True)
class NewIntent:
    application_id: UUID
    merchant_reference: str
    amount: int
    currency: str
    description: str | None = None
    customer_external_id: str | None = None
    return_url: str | None = None
    metadata: Mapping[str, str] | None = None
    expires_at: datetime | None = None
    """None means 24 hours after creation."""


@dataclass(frozen=True, slots=True)
class Intent:
    uuid: UUID
    application_id: UUID
    merchant_reference: str
    reference: str
    amount: int
    currency: str
    status: State
    description: str | None
    customer_external_id: str | None
    return_url: str | None
    metadata: dict[str, str] | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime


class IntentNotFoundError(Exception):
    """No intent has this uuid."""


class ExpiryOutsideWindowError(Exception):
    """A new intent would expire too soon or too late; nothing was made."""


_COLUMNS = """uuid, application_id, merchant_reference, reference, amount, currency, status, description,
    customer_external_id, return_url, metadata, expires_at, created_at, updated_at"""

# Goes behind a CTE `changed` (uuid, application_id, event_seq, event_type, updated_at): writes down each change
# in the event log and puts its message into the outbox. Ids are drawn once, so no join is needed to plan badly.
_RECORD_CHANGES = f"""
numbered as materialized (
    select uuidv7() as id, uuid, application_id, event_seq, event_type, updated_at from changed
),
logged as (
    insert into intent_events (id, intent_uuid, seq, type, at)
    select id, uuid, event_seq, event_type, updated_at from numbered
),
queued as (
    insert into outbox (topic, key, payload)
    select '{PAYMENT_INTENT_EVENTS.name}', uuid,
           intent_event_message(id, uuid, application_id, event_seq, event_type, updated_at)
    from numbered
)"""

# §4.1: judged by the database's clock, and only when an intent would be made.
_WITHIN_WINDOW = """({0}::timestamptz is null
     or {0}::timestamptz > mizan_now() + interval '5 minutes' and {0} < mizan_now() + interval '31 days')"""

CREATE_SQL = f"""
with made as (
    insert into payment_intents (application_id, merchant_reference, reference, amount, currency, description,
                                 customer_external_id, return_url, metadata, expires_at)
    select $1::uuid, $2, $3, $4::bigint, $5, $6, $7, $8, $9::json,
           coalesce($10::timestamptz, mizan_now() + interval '24 hours')
    where {_WITHIN_WINDOW.format("$10")}
    on conflict do nothing
    returning {_COLUMNS}, event_seq
),
changed as (
    select uuid, application_id, event_seq, '{event_of(None, move(None, Trigger.CREATE))}' as event_type, updated_at
    from made
),
{_RECORD_CHANGES}
select {_COLUMNS} from made"""
_CREATE = Prepared(CREATE_SQL)

_FIND_REPEATED = Prepared(
    f"select {_COLUMNS} from payment_intents where application_id = $1 and merchant_reference = $2"
)
_FIND = Prepared(f"select {_COLUMNS} from payment_intents where uuid = $1")

_MAY_EXPIRE_AT = f"""
select {_WITHIN_WINDOW.format("%(expires_at)s")}
    or exists (select from payment_intents
               where application_id = %(application_id)s and merchant_reference = %(merchant_reference)s)"""

_GET_LOCKED = "select status from payment_intents where uuid = %s for no key update"

_CHANGE = f"""
with changed as (
    update payment_intents set status = %(status)s, event_seq = event_seq + 1, updated_at = mizan_now()
    where uuid = %(uuid)s
    returning uuid, application_id, event_seq, %(event_type)s as event_type, updated_at
),
{_RECORD_CHANGES}
select 1 from changed"""


def create_or_find(cursor: Cursor[Any], new: NewIntent) -> tuple[Intent, bool]:
    """The intent of this reference, and whether this call made it (§4.1, rules 1 to 3)."""
    key = [str(new.application_id).encode(), new.merchant_reference.encode()]
    rest = [
        b"%d" % new.amount,
        new.currency.encode(),
        _text(new.description),
        _text(new.customer_external_id),
        _text(new.return_url),
        None if new.metadata is None else json.dumps(new.metadata).encode(),
        None if new.expires_at is None else new.expires_at.isoformat().encode(),
    ]
    while True:
        made = _CREATE.first_row(cursor, [*key, new_reference().encode(), *rest])
        if made is not None:
            return _intent(made), True
        found = _FIND_REPEATED.first_row(cursor, key)
        if found is not None:
            return _intent(found), False
        if not may_expire_at(cursor, new.application_id, new.merchant_reference, new.expires_at):
            raise ExpiryOutsideWindowError
        # Neither made nor found, and it may be made: the short reference was taken. Draw another.


def may_expire_at(
    cursor: Cursor[Any],
    application_id: UUID,
    merchant_reference: str | None,
    expires_at: datetime | None,
) -> bool:
    """Whether a create with this time would be accepted: within the window, or a repeat (§4.1 rule 5)."""
    values = {
        "application_id": application_id,
        "merchant_reference": merchant_reference,
        "expires_at": expires_at,
    }
    return cursor.execute(_MAY_EXPIRE_AT, values).fetchone() == (True,)


def find(cursor: Cursor[Any], uuid: UUID) -> Intent | None:
    row = _FIND.first_row(cursor, [str(uuid).encode()])
    return None if row is None else _intent(row)


def _intent(row: Row) -> Intent:
    """Reads PostgreSQL's text, in the order of _COLUMNS."""
    uuid, application, merchant_reference, reference, amount, currency, status = map(_required, row[:7])
    expires_at, created_at, updated_at = (datetime.fromisoformat(_required(text)) for text in row[11:])
    return Intent(
        uuid=UUID(uuid),
        application_id=UUID(application),
        merchant_reference=merchant_reference,
        reference=reference,
        amount=int(amount),
        currency=currency,
        status=State(status),
        description=_string(row[7]),
        customer_external_id=_string(row[8]),
        return_url=_string(row[9]),
        metadata=None if row[10] is None else json.loads(row[10]),
        expires_at=expires_at,
        created_at=created_at,
        updated_at=updated_at,
    )


def _required(text: bytes | None) -> str:
    assert text is not None
    return text.decode()


def _string(text: bytes | None) -> str | None:
    return None if text is None else text.decode()


def _text(string: str | None) -> bytes | None:
    return None if string is None else string.encode()


def apply(connection: Connection[Any], uuid: UUID, trigger: Trigger) -> State:
    """Moves an intent and returns its new state; raises MoveNotAllowedError where the table has no such move."""
    row = connection.execute(_GET_LOCKED, (uuid,)).fetchone()
    if row is None:
        raise IntentNotFoundError(str(uuid))
    before = State(row[0])
    after = move(before, trigger)
    event_type = event_of(before, after)
    if event_type is not None:
        connection.execute(_CHANGE, {"uuid": uuid, "status": after, "event_type": event_type})
    return after

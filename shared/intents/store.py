"""The one room that writes payment intents: a change, its event and its outbox row, in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.types.json import Json
from psycopg.types.numeric import Int8

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", State(self.status))


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
_EXPIRES_WITHIN_WINDOW = """(%s::timestamptz is null
     or %s::timestamptz > mizan_now() + interval '5 minutes'
    and %s::timestamptz < mizan_now() + interval '31 days')"""

CREATE = f"""
with made as (
    insert into payment_intents (application_id, merchant_reference, reference, amount, currency, description,
                                 customer_external_id, return_url, metadata, expires_at)
    select %s, %s, %s, %s, %s, %s, %s, %s, %s, coalesce(%s::timestamptz, mizan_now() + interval '24 hours')
    where {_EXPIRES_WITHIN_WINDOW}
    on conflict do nothing
    returning {_COLUMNS}, event_seq
),
changed as (
    select uuid, application_id, event_seq, '{event_of(None, move(None, Trigger.CREATE))}' as event_type, updated_at
    from made
),
{_RECORD_CHANGES}
select {_COLUMNS} from made"""

_FIND = f"select {_COLUMNS} from payment_intents where application_id = %s and merchant_reference = %s"

_GET = f"select {_COLUMNS} from payment_intents where uuid = %s"

_MAY_EXPIRE_AT = f"""
select {_EXPIRES_WITHIN_WINDOW}
    or exists (select from payment_intents where application_id = %s and merchant_reference = %s)"""

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
    before = (new.application_id, new.merchant_reference)
    after = (
        Int8(new.amount),
        new.currency,
        new.description,
        new.customer_external_id,
        new.return_url,
        None if new.metadata is None else Json(new.metadata),
        *((new.expires_at,) * 4),
    )
    while True:
        made = cursor.execute(CREATE, (*before, new_reference(), *after)).fetchone()
        if made is not None:
            return Intent(*made), True
        found = cursor.execute(_FIND, before).fetchone()
        if found is not None:
            return Intent(*found), False
        if not may_expire_at(cursor, *before, new.expires_at):
            raise ExpiryOutsideWindowError
        # Neither made nor found, and it may be made: the short reference was taken. Draw another.


def may_expire_at(
    cursor: Cursor[Any],
    application_id: UUID,
    merchant_reference: str | None,
    expires_at: datetime | None,
) -> bool:
    """Whether a create with this time would be accepted: within the window, or a repeat (§4.1 rule 5)."""
    values = (expires_at, expires_at, expires_at, application_id, merchant_reference)
    return cursor.execute(_MAY_EXPIRE_AT, values).fetchone() == (True,)


def find(cursor: Cursor[Any], uuid: UUID) -> Intent | None:
    row = cursor.execute(_GET, (uuid,)).fetchone()
    return None if row is None else Intent(*row)


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

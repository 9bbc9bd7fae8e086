"""The only module that writes payment intents: each change, its event and its outbox row in one transaction."""

import json
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.intents.intent import INTENT_COLUMNS, Intent, NewIntent, new_reference, parse_intent
from shared.domain.intents.states import (
    EventType,
    IntentStatus,
    IntentTrigger,
    event_type_for,
    may_expire,
    next_status,
)
from shared.domain.outbox import WAKE_RELAY_SQL
from shared.domain.topics import PAYMENT_INTENT_EVENTS
from shared.platform.database.pool import fetch_scalar
from shared.platform.database.prepared_statements import PreparedStatement
from shared.platform.database.stable_plans import quoted_array, text_array
from shared.platform.tracing.spans import current_trace

EXPIRY_BATCH = 1000


class IntentNotFoundError(Exception):
    """No intent has this uuid."""


class ExpiryOutsideWindowError(Exception):
    """The new intent would expire too soon or too late. Nothing was created."""


# Follows a CTE `changed` (uuid, application_id, event_seq, event_type, updated_at, trace): inserts an event and an
# outbox row for each change. Ids are generated once, so that no join is needed that could be planned badly.
_RECORD_CHANGES_TEMPLATE = f"""
numbered as materialized (
    select uuidv7() as id, uuid, application_id, event_seq, event_type, updated_at, trace from changed
),
logged as (
    insert into intent_events (id, intent_uuid, seq, type, at{{column}})
    select id, uuid, event_seq, event_type, updated_at{{value}} from numbered
),
queued as (
    insert into outbox (topic, key, payload, trace)
    select '{PAYMENT_INTENT_EVENTS.name}', uuid,
           intent_event_message(id, uuid, application_id, event_seq, event_type, updated_at), trace
    from numbered
)"""
_RECORD_CHANGES = _RECORD_CHANGES_TEMPLATE.format(column="", value="")
_RECORD_CHANGE_BY_CODE = _RECORD_CHANGES_TEMPLATE.format(
    column=", wrong_code", value=", %(wrong_code)s::smallint"
)

# §4.1: checked against the database's clock, and only if an intent would be created.
_WITHIN_WINDOW = """({0}::timestamptz is null
     or {0}::timestamptz > mizan_now() + interval '5 minutes' and {0} < mizan_now() + interval '31 days')"""

# {0} is the query whose rows are inserted.
_CREATE_TEMPLATE = f"""
with created as (
    insert into payment_intents (application_id, merchant_reference, reference, amount, currency, description,
                                 customer_external_id, return_url, metadata, expires_at, trace)
    {{0}}
    on conflict do nothing
    returning {INTENT_COLUMNS}, event_seq, trace
),
changed as (
    select uuid, application_id, event_seq,
           '{event_type_for(None, next_status(None, IntentTrigger.CREATE))}' as event_type, updated_at, trace
    from created
),
{_RECORD_CHANGES}
select {INTENT_COLUMNS} from created"""
CREATE_SQL = _CREATE_TEMPLATE.format(
    f"""select $1::uuid, $2, $3, $4::bigint, $5, $6, $7, $8, $9::json,
           coalesce($10::timestamptz, mizan_now() + interval '24 hours'), $11::text
    where {_WITHIN_WINDOW.format("$10")}"""
)
_CREATE = PreparedStatement(CREATE_SQL)
# The same for several intents at once, with an array for each column.
CREATE_BATCH_SQL = _CREATE_TEMPLATE.format(
    f"""select application_id, merchant_reference, reference, amount, currency, description,
           customer_external_id, return_url, metadata,
           coalesce(expires_at, mizan_now() + interval '24 hours'), trace
    from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
                $9::json[], $10::timestamptz[], $11::text[])
         as new (application_id, merchant_reference, reference, amount, currency, description,
                 customer_external_id, return_url, metadata, expires_at, trace)
    where {_WITHIN_WINDOW.format("expires_at")}"""
)
_CREATE_BATCH = PreparedStatement(CREATE_BATCH_SQL)

_FIND_REPEATED = PreparedStatement(
    f"select {INTENT_COLUMNS} from payment_intents where application_id = $1 and merchant_reference = $2"
)
_FIND = PreparedStatement(f"select {INTENT_COLUMNS} from payment_intents where uuid = $1")
_FIND_BATCH = PreparedStatement(f"select {INTENT_COLUMNS} from payment_intents where uuid = any($1::uuid[])")

_MAY_EXPIRE_AT = f"""
select {_WITHIN_WINDOW.format("%(expires_at)s")}
    or exists (select from payment_intents
               where application_id = %(application_id)s and merchant_reference = %(merchant_reference)s)"""

_LOCK = "select status from payment_intents where uuid = %s for no key update"
_IS_OVER = "select expires_at <= mizan_now() from payment_intents where uuid = %s"

# A change keeps the intent's own trace, unless the current span belongs to that trace. An operator's trace, for
# example, is not taken over.
_CHANGE = f"""
with changed as (
    update payment_intents set status = %(status)s, event_seq = event_seq + 1, updated_at = mizan_now()
    where uuid = %(uuid)s
    returning uuid, application_id, event_seq, %(event_type)s as event_type, updated_at,
              case when substr(%(trace)s::text, 4, 32) = substr(trace, 4, 32) then %(trace)s else trace end as trace
),
{_RECORD_CHANGE_BY_CODE}
select {WAKE_RELAY_SQL} from changed where event_type in ('{EventType.SUCCEEDED}', '{EventType.CANCELED}')"""


(_EXPIRABLE,) = filter(may_expire, IntentStatus)


def expire_sql(which: str) -> str:
    """Return SQL that cancels the intents that match the condition `which`, each with an event and an outbox row."""
    return f"""
with changed as (
    update payment_intents
    set status = '{next_status(_EXPIRABLE, IntentTrigger.EXPIRE)}', event_seq = event_seq + 1,
        updated_at = mizan_now()
    where {which}
    returning uuid, application_id, event_seq, '{EventType.CANCELED}' as event_type, updated_at, trace
),
{_RECORD_CHANGES}
select count(*), (select {WAKE_RELAY_SQL} from changed limit 1) from changed"""


DUE_CONDITION = f"status = '{_EXPIRABLE}' and expires_at <= mizan_now()"
NEXT_DUE_SQL = f"""
select extract(epoch from expires_at - mizan_now())::float8 from payment_intents
where status = '{_EXPIRABLE}' and uuid <> all(%s) order by expires_at limit 1"""
_FIRST_DUE = (
    f"{{0}} from payment_intents where {DUE_CONDITION} and uuid <> all(%s) order by expires_at limit {{1}}"
)
_LOCK_FIRST_DUE = _FIRST_DUE.format("select uuid", 1) + " for no key update skip locked"
# Rows are selected by ctid, so that there is no join: the plan is the same for an empty and a huge table. The limit is
# a literal because the planner assumes a tenth of the table for an unknown limit. Locked rows are skipped and left to
# the next run.
EXPIRE_SQL = {
    batch: expire_sql(
        f"ctid = any(array({_FIRST_DUE.format('select ctid', batch)} for no key update skip locked))"
    )
    for batch in (10, 100, EXPIRY_BATCH)
}


def create_or_find(cursor: Cursor[Any], new: NewIntent) -> tuple[Intent, bool]:
    """Return the intent with this merchant reference, and whether this call created it (§4.1, rules 1 to 3).

    Raises ExpiryOutsideWindowError if it would be created with an expiry outside the window.
    """
    key = [str(new.application_id).encode(), new.merchant_reference.encode()]
    rest = [
        b"%d" % new.amount,
        new.currency.encode(),
        _text(new.description),
        _text(new.customer_external_id),
        _text(new.return_url),
        None if new.metadata is None else json.dumps(new.metadata).encode(),
        None if new.expires_at is None else new.expires_at.isoformat().encode(),
        _text(new.trace),
    ]
    while True:
        created = _CREATE.fetch_one(cursor, [*key, new_reference().encode(), *rest])
        if created is not None:
            return parse_intent(created), True
        found = _FIND_REPEATED.fetch_one(cursor, key)
        if found is not None:
            return parse_intent(found), False
        if not may_expire_at(cursor, new.application_id, new.merchant_reference, new.expires_at):
            raise ExpiryOutsideWindowError
        # Neither created nor found, and the expiry is allowed: the short reference was taken. Try another one.


def create_batch(cursor: Cursor[Any], batch: Sequence[NewIntent]) -> list[Intent | None]:
    """Create intents in one statement. Return for each what was created, or None if it was not.

    That may be a repeat, also of another intent of the batch, or its expiry is outside the window, or its short
    reference was taken: create_or_find() tells. If an error is raised, nothing was created.
    """
    rows = [
        (
            str(new.application_id),
            new.merchant_reference,
            new_reference(),
            str(new.amount),
            new.currency,
            new.description,
            new.customer_external_id,
            new.return_url,
            None if new.metadata is None else json.dumps(new.metadata),
            None if new.expires_at is None else new.expires_at.isoformat(),
            new.trace,
        )
        for new in batch
    ]
    # Concurrent batches with the same merchant references wait for each other: in this order, never in a circle.
    in_order = sorted(rows, key=itemgetter(0, 1))
    found = _CREATE_BATCH.fetch_all(cursor, [quoted_array(column) for column in zip(*in_order, strict=True)])
    # By all three: even if two intents of a batch got the same short reference, neither is taken for the other.
    created = {
        (str(intent.application_id), intent.merchant_reference, intent.reference): intent
        for intent in map(parse_intent, found)
    }
    return [created.get(row[:3]) for row in rows]


def may_expire_at(
    cursor: Cursor[Any],
    application_id: UUID,
    merchant_reference: str | None,
    expires_at: datetime | None,
) -> bool:
    """Return whether a create with this expiry is accepted: within the window, or a repeat (§4.1 rule 5)."""
    values = {
        "application_id": application_id,
        "merchant_reference": merchant_reference,
        "expires_at": expires_at,
    }
    return cursor.execute(_MAY_EXPIRE_AT, values).fetchone() == (True,)


def find_intent(cursor: Cursor[Any], uuid: UUID) -> Intent | None:
    row = _FIND.fetch_one(cursor, [str(uuid).encode()])
    return None if row is None else parse_intent(row)


def find_batch(cursor: Cursor[Any], uuids: Sequence[UUID]) -> list[Intent | None]:
    """Return for each uuid what find_intent() would."""
    rows = _FIND_BATCH.fetch_all(cursor, [text_array(map(str, uuids))])
    found = {intent.uuid: intent for intent in map(parse_intent, rows)}
    return [found.get(uuid) for uuid in uuids]


def _text(string: str | None) -> bytes | None:
    return None if string is None else string.encode()


def lock_intent(connection: Connection[Any], uuid: UUID) -> IntentStatus:
    """Lock the intent until the transaction ends and return its status. Raises IntentNotFoundError."""
    row = connection.execute(_LOCK, (uuid,)).fetchone()
    if row is None:
        raise IntentNotFoundError(str(uuid))
    return IntentStatus(row[0])


def is_expired(connection: Connection[Any], uuid: UUID) -> bool:
    """Return whether `expires_at` has passed, even if the scheduler has not canceled the intent yet.

    Call it after locking the intent, because waiting for the lock may take long.
    """
    return bool(fetch_scalar(connection, _IS_OVER, (uuid,)))


def apply_trigger(
    connection: Connection[Any], uuid: UUID, trigger: IntentTrigger, *, wrong_code: int | None = None
) -> IntentStatus:
    """Apply a trigger to an intent and return its new status. Raises TransitionNotAllowedError or IntentNotFoundError.

    An intent that returns to requires_payment_method after its expiry is canceled at once. `wrong_code` is the number
    of the code entry, if the trigger follows from a wrong one-time code. It is recorded with the event.
    """
    before = lock_intent(connection, uuid)
    after = next_status(before, trigger)
    event_type = event_type_for(before, after)
    if event_type is None:
        return after
    values = {
        "uuid": uuid,
        "status": after,
        "event_type": event_type,
        "trace": current_trace(),
        "wrong_code": wrong_code,
    }
    connection.execute(_CHANGE, values)
    if may_expire(after) and is_expired(connection, uuid):
        return apply_trigger(connection, uuid, IntentTrigger.EXPIRE)
    return after


def seconds_to_next_due(cursor: Cursor[Any], excluding: Sequence[UUID] = ()) -> float | None:
    """Return the seconds until the next intent expires: 0 or less if one is due, None if there is none."""
    row = cursor.execute(NEXT_DUE_SQL, (list(excluding),)).fetchone()
    return None if row is None else float(row[0])


def expire_due(cursor: Cursor[Any], batch: int = EXPIRY_BATCH, excluding: Sequence[UUID] = ()) -> int:
    """Cancel a batch of expired intents, the longest overdue first, and return how many were canceled."""
    return int(fetch_scalar(cursor, EXPIRE_SQL[batch], (list(excluding),)))


def lock_first_due(connection: Connection[Any], excluding: Sequence[UUID] = ()) -> UUID | None:
    """Lock and return the longest overdue intent that nobody else has locked, or None."""
    row = connection.execute(_LOCK_FIRST_DUE, (list(excluding),)).fetchone()
    return None if row is None else UUID(str(row[0]))

"""Queries of the pipeline: reads deliveries and records their tries in batches, one statement for many rows.

The values of a batch are arrays beside the sorted ids; shared/platform/database/stable_plans.py explains why.
docs/decisions/0010-webhooks.md has the figures.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any

import msgspec
from psycopg import Cursor

from services.webhooks.http.client import TryResult
from services.webhooks.retry_schedule import DeliveryStatus, RetryDecision
from shared.domain.deliveries.try_results import NO_URL
from shared.platform.database.prepared_statements import PreparedStatement, Row
from shared.platform.database.stable_plans import (
    among_keys_sql,
    bytea_array,
    element_sql,
    key_array,
    position_sql,
    text_array,
)

# Tables are partitioned by month, so each month starts with an empty one, whose plan must not be kept.
REPLAN_AFTER_S = 30.0
_STATUSES = {str(status): status for status in DeliveryStatus}

FETCH_DELIVERIES_SQL = f"""
select d.id, d.application_id, d.intent_uuid, d.event, d.status, d.step, d.next_due_at, d.url, d.secret_version,
       a.webhook_url, a.webhook_secret_version, a.webhooks_paused_at is not null,
       extract(epoch from d.next_due_at - mizan_now()), d.last_failure = '{NO_URL}'
from webhook_deliveries as d
cross join lateral (select webhook_url, webhook_secret_version, webhooks_paused_at
                    from applications where id = d.application_id offset 0) as a
where {among_keys_sql("d.id")}"""
_FETCH_DELIVERIES = PreparedStatement(FETCH_DELIVERIES_SQL, REPLAN_AFTER_S)

# $1 the sorted ids. For each try: $2 step, $3 its age in milliseconds, $4 duration, $5 status code, $6 failure,
# $7 the start of the response body. For its delivery: $8 status, $9 step, $10 seconds until that step is due.
RECORD_TRIES_SQL = f"""
with advanced as (
    update webhook_deliveries
    set tries = tries + 1,
        status = {element_sql("$8::text[]")},
        step = {element_sql("$9::smallint[]")},
        next_due_at = mizan_now() + make_interval(secs => {element_sql("$10::float8[]")}),
        last_status_code = {element_sql("$5::integer[]")},
        last_failure = {element_sql("$6::text[]")},
        updated_at = mizan_now()
    where {among_keys_sql()} and status = 'pending'
      and step = {element_sql("$2::smallint[]")}
    returning id, tries, url, next_due_at, {position_sql()} as item
),
inserted as (
    insert into webhook_tries (delivery_id, number, step, at, duration_ms, url, status_code, failure, response_body)
    select id, tries, ($2::smallint[])[item], mizan_now() - make_interval(secs => ($3::integer[])[item] / 1000.0),
           ($4::integer[])[item], url, ($5::integer[])[item], ($6::text[])[item], ($7::bytea[])[item]
    from advanced
)
select id, next_due_at from advanced"""
_RECORD_TRIES = PreparedStatement(RECORD_TRIES_SQL, REPLAN_AFTER_S)

# A resend counts as a try. It can make a delivery succeed, never fail. $2 resend ids, $3 to $7 as above, $8 the URL
# of the request, as UTF-8 in hexadecimal, which needs no quotes.
RECORD_RESENDS_SQL = f"""
with resent as (
    update webhook_deliveries as d
    set tries = tries + 1,
        status = case when {element_sql("$5::integer[]")} between 200 and 299 then 'succeeded'
                      else status end,
        next_due_at = case when {element_sql("$5::integer[]")} between 200 and 299 then null
                           else next_due_at end,
        last_status_code = {element_sql("$5::integer[]")},
        last_failure = {element_sql("$6::text[]")},
        updated_at = mizan_now()
    where {among_keys_sql()}
      and not exists (select from webhook_tries
                      where delivery_id = d.id and resend_id = {element_sql("$2::uuid[]", "d.id")}
                      offset 0)
    returning id, tries, {position_sql()} as item
),
inserted as (
    insert into webhook_tries (delivery_id, number, resend_id, at, duration_ms, url, status_code, failure,
                               response_body)
    select id, tries, ($2::uuid[])[item], mizan_now() - make_interval(secs => ($3::integer[])[item] / 1000.0),
           ($4::integer[])[item], convert_from(($8::bytea[])[item], 'UTF8'), ($5::integer[])[item],
           ($6::text[])[item], ($7::bytea[])[item]
    from resent
)
select id from resent"""
_RECORD_RESENDS = PreparedStatement(RECORD_RESENDS_SQL, REPLAN_AFTER_S)

_FAIL_WITHOUT_URL = PreparedStatement(
    f"""
update webhook_deliveries
set status = 'failed', next_due_at = null, last_status_code = null, last_failure = '{NO_URL}', updated_at = mizan_now()
where {among_keys_sql()} and status = 'pending' returning id""",
    REPLAN_AFTER_S,
)
_SET_ASIDE = PreparedStatement(
    f"""
update webhook_deliveries set set_aside_at = mizan_now()
where {among_keys_sql()} and status = 'pending' and set_aside_at is null returning id""",
    REPLAN_AFTER_S,
)
_FIND_RECORDED_RESENDS = PreparedStatement(
    """
select delivery_id, resend_id from webhook_tries where delivery_id = any($1::uuid[]) and resend_id = any($2::uuid[])""",
    REPLAN_AFTER_S,
)
_FIND_UNLESS_SUCCEEDED = PreparedStatement(
    "select id from resend_requests where id = any($1::uuid[]) and unless_succeeded", REPLAN_AFTER_S
)


class DeliveryTarget(msgspec.Struct, frozen=True):
    """The URL of a try, and the version of the application's secret that signs it."""

    url: str
    secret_version: int


class DeliveryState(msgspec.Struct, frozen=True):
    """A delivery as it is in the database now."""

    id: str
    application_id: str
    intent_uuid: str
    event: str
    status: DeliveryStatus
    step: int
    due_at: bytes | None
    """As text of PostgreSQL: parsed by `next_due_at` only where it is needed, which is rare."""
    original: DeliveryTarget
    """Used for scheduled tries: as it was when the delivery was created."""
    current: DeliveryTarget | None
    """Used for resends: as the application has it now. None if the application has no URL."""
    is_paused: bool
    due_in_s: float
    """0 or less if it is due."""
    ended_without_url: bool

    @property
    def next_due_at(self) -> datetime | None:
        return _timestamp(self.due_at)


class ScheduledTry(msgspec.Struct, frozen=True):
    """A try of the retry schedule, to be recorded."""

    delivery_id: str
    step: int
    result: TryResult
    age_ms: int
    """Time since the request began."""
    decision: RetryDecision


class ResendTry(msgspec.Struct, frozen=True):
    """A resend, to be recorded."""

    delivery_id: str
    resend_id: str
    result: TryResult
    age_ms: int
    url: str


def fetch_deliveries(cursor: Cursor[Any], ids: AbstractSet[str]) -> dict[str, DeliveryState]:
    """Return these deliveries by id; ids that do not exist are left out."""
    return {
        delivery.id: delivery
        for delivery in map(parse_delivery, _FETCH_DELIVERIES.fetch_all(cursor, [key_array(sorted(ids))]))
    }


def record_tries(cursor: Cursor[Any], tries: Sequence[ScheduledTry]) -> dict[str, datetime | None]:
    """Record tries of different deliveries, and move each delivery that is still at that step to its next one.

    Returns when each of these deliveries is due next, or None if no try follows. Tries that another process recorded
    first are left out.
    """
    tries = sorted(tries, key=lambda one: one.delivery_id)
    values = [
        key_array([one.delivery_id for one in tries]),
        text_array(str(one.step) for one in tries),
        *_result_arrays([one.result for one in tries], [one.age_ms for one in tries]),
        text_array(one.decision.status for one in tries),
        text_array(str(one.decision.next_step) for one in tries),
        text_array(None if one.decision.wait_s is None else str(one.decision.wait_s) for one in tries),
    ]
    return {_text(row[0]): _timestamp(row[1]) for row in _RECORD_TRIES.fetch_all(cursor, values)}


def record_resends(cursor: Cursor[Any], tries: Sequence[ResendTry]) -> None:
    """Record resends of different deliveries. A resend that is recorded already is skipped."""
    tries = sorted(tries, key=lambda one: one.delivery_id)
    values = [
        key_array([one.delivery_id for one in tries]),
        text_array(one.resend_id for one in tries),
        *_result_arrays([one.result for one in tries], [one.age_ms for one in tries]),
        bytea_array(one.url.encode() for one in tries),
    ]
    _RECORD_RESENDS.fetch_all(cursor, values)


def find_recorded_resends(cursor: Cursor[Any], resends: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of these (delivery id, resend id) that are recorded already."""
    deliveries, ids = zip(*resends, strict=True)
    rows = _FIND_RECORDED_RESENDS.fetch_all(cursor, [text_array(deliveries), text_array(ids)])
    return {(_text(row[0]), _text(row[1])) for row in rows}


def find_unless_succeeded(cursor: Cursor[Any], resend_ids: Iterable[str]) -> set[str]:
    """Return those of these resends that are not wanted any more once their delivery has succeeded."""
    return {_text(row[0]) for row in _FIND_UNLESS_SUCCEEDED.fetch_all(cursor, [text_array(resend_ids)])}


def fail_without_url(cursor: Cursor[Any], ids: AbstractSet[str]) -> int:
    """End these deliveries as failed because their application has no URL. Returns how many were pending."""
    return len(_FAIL_WITHOUT_URL.fetch_all(cursor, [key_array(sorted(ids))]))


def set_aside(cursor: Cursor[Any], ids: AbstractSet[str]) -> int:
    """Set these pending deliveries aside until the scheduler requeues them, once their application is resumed.

    Returns how many were not set aside before.
    """
    return len(_SET_ASIDE.fetch_all(cursor, [key_array(sorted(ids))]))


def _result_arrays(results: Sequence[TryResult], ages_ms: Sequence[int]) -> list[bytes]:
    return [
        text_array(map(str, ages_ms)),
        text_array(str(result.duration_ms) for result in results),
        text_array(None if result.status_code is None else str(result.status_code) for result in results),
        text_array(result.failure for result in results),
        bytea_array(result.body for result in results),
    ]


def parse_delivery(row: Row) -> DeliveryState:
    """Return a row with the columns of FETCH_DELIVERIES_SQL."""
    delivery_id, application_id, intent_uuid, event, status, step, due_at, url, version, *rest = row
    current_url, current_version, is_paused, due_in_s, ended_without_url = rest
    return DeliveryState(
        _text(delivery_id),
        _text(application_id),
        _text(intent_uuid),
        _text(event),
        _STATUSES[_text(status)],
        int(step or 0),
        due_at,
        DeliveryTarget(_text(url), int(version or 0)),
        None if current_url is None else DeliveryTarget(_text(current_url), int(current_version or 0)),
        is_paused == b"t",
        float(due_in_s or 0),
        ended_without_url == b"t",
    )


def _text(value: bytes | None) -> str:
    assert value is not None
    return value.decode()


def _timestamp(value: bytes | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value.decode())

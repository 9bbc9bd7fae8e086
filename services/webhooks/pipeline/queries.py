"""The room that writes webhook deliveries and their tries, in batches: one statement for many rows.

Values of a batch come as arrays beside the sorted ids. Rows are found by `id = any(…)` and each looks up its own
values by its place among the ids, which `width_bucket` finds by binary search. So there is no join to plan badly: one
plan from an empty to a huge table, and rows are locked in the order of their ids.
docs/decisions/0010-webhooks.md has the figures.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from psycopg import Cursor

from services.webhooks.http.client import TryResult
from services.webhooks.retry_schedule import DeliveryStatus, RetryDecision
from shared.domain.deliveries.try_results import NO_URL
from shared.platform.database.prepared import Prepared, Row, array

# Each month begins with empty tables.
REPLAN_AFTER_S = 30.0
_STATUSES = {str(status): status for status in DeliveryStatus}

FETCH_DELIVERIES_SQL = f"""
select d.id, d.application_id, d.intent_uuid, d.event, d.status, d.step, d.next_due_at, d.url, d.secret_version,
       a.webhook_url, a.webhook_secret_version, a.webhooks_paused_at is not null,
       extract(epoch from d.next_due_at - mizan_now()), d.last_failure = '{NO_URL}'
from webhook_deliveries as d
cross join lateral (select webhook_url, webhook_secret_version, webhooks_paused_at
                    from applications where id = d.application_id offset 0) as a
where d.id = any($1::uuid[])"""
_LOOK = Prepared(FETCH_DELIVERIES_SQL, REPLAN_AFTER_S)

# $1 the ids, in order; of each try: $2 step, $3 its age in milliseconds, $4 duration, $5 status code, $6 failure,
# $7 the beginning of the answer; of its delivery: $8 status, $9 step, $10 seconds until that is due.
RECORD_TRIES_SQL = """
with advanced as (
    update webhook_deliveries
    set tries = tries + 1,
        status = ($8::text[])[width_bucket(id, $1::uuid[])],
        step = ($9::smallint[])[width_bucket(id, $1::uuid[])],
        next_due_at = mizan_now() + make_interval(secs => ($10::float8[])[width_bucket(id, $1::uuid[])]),
        last_status_code = ($5::integer[])[width_bucket(id, $1::uuid[])],
        last_failure = ($6::text[])[width_bucket(id, $1::uuid[])],
        updated_at = mizan_now()
    where id = any($1::uuid[]) and status = 'pending'
      and step = ($2::smallint[])[width_bucket(id, $1::uuid[])]
    returning id, tries, url, next_due_at, width_bucket(id, $1::uuid[]) as place
),
noted as (
    insert into webhook_tries (delivery_id, number, step, at, duration_ms, url, status_code, failure, answer)
    select id, tries, ($2::smallint[])[place], mizan_now() - make_interval(secs => ($3::integer[])[place] / 1000.0),
           ($4::integer[])[place], url, ($5::integer[])[place], ($6::text[])[place], ($7::bytea[])[place]
    from advanced
)
select id, next_due_at from advanced"""
_RECORD = Prepared(RECORD_TRIES_SQL, REPLAN_AFTER_S)

# A resend counts as a try and can only make things better. $2 resend ids, $3 to $7 as above, $8 the URL that it
# went to, as UTF-8 in hexadecimal, which needs no quotes.
RECORD_RESENDS_SQL = """
with resent as (
    update webhook_deliveries as d
    set tries = tries + 1,
        status = case when ($5::integer[])[width_bucket(id, $1::uuid[])] between 200 and 299 then 'succeeded'
                      else status end,
        next_due_at = case when ($5::integer[])[width_bucket(id, $1::uuid[])] between 200 and 299 then null
                           else next_due_at end,
        last_status_code = ($5::integer[])[width_bucket(id, $1::uuid[])],
        last_failure = ($6::text[])[width_bucket(id, $1::uuid[])],
        updated_at = mizan_now()
    where id = any($1::uuid[])
      and not exists (select from webhook_tries
                      where delivery_id = d.id and resend_id = ($2::uuid[])[width_bucket(d.id, $1::uuid[])]
                      offset 0)
    returning id, tries, width_bucket(id, $1::uuid[]) as place
),
noted as (
    insert into webhook_tries (delivery_id, number, resend_id, at, duration_ms, url, status_code, failure, answer)
    select id, tries, ($2::uuid[])[place], mizan_now() - make_interval(secs => ($3::integer[])[place] / 1000.0),
           ($4::integer[])[place], convert_from(($8::bytea[])[place], 'UTF8'), ($5::integer[])[place],
           ($6::text[])[place], ($7::bytea[])[place]
    from resent
)
select id from resent"""
_RECORD_RESENDS = Prepared(RECORD_RESENDS_SQL, REPLAN_AFTER_S)

_END_WITHOUT_URL = Prepared(
    f"""
update webhook_deliveries
set status = 'failed', next_due_at = null, last_status_code = null, last_failure = '{NO_URL}', updated_at = mizan_now()
where id = any($1::uuid[]) and status = 'pending' returning id""",
    REPLAN_AFTER_S,
)
_PARK = Prepared(
    """
update webhook_deliveries set parked_at = mizan_now()
where id = any($1::uuid[]) and status = 'pending' and parked_at is null returning id""",
    REPLAN_AFTER_S,
)
_MET_RESENDS = Prepared(
    """
select delivery_id, resend_id from webhook_tries where delivery_id = any($1::uuid[]) and resend_id = any($2::uuid[])""",
    REPLAN_AFTER_S,
)


class DeliveryTarget(msgspec.Struct, frozen=True):
    """Where a try goes, and which of the application's secrets signs it."""

    url: str
    secret_version: int


class DeliveryState(msgspec.Struct, frozen=True):
    """As the database has it now."""

    id: str
    application_id: str
    intent_uuid: str
    event: str
    status: DeliveryStatus
    step: int
    due_at: bytes | None
    """As PostgreSQL writes it: hardly anybody wants to know."""
    frozen: DeliveryTarget
    """For its ladder: as it was when the event was taken in."""
    current: DeliveryTarget | None
    """As the application has it now; None when it has no URL."""
    is_paused: bool
    due_in_s: float
    """0 or less when it is due."""
    ended_without_url: bool

    @property
    def next_due_at(self) -> datetime | None:
        return _moment(self.due_at)


class ScheduledTry(msgspec.Struct, frozen=True):
    delivery_id: str
    step: int
    answer: TryResult
    age_ms: int
    """Since it began."""
    decision: RetryDecision


class ResendTry(msgspec.Struct, frozen=True):
    delivery_id: str
    resend_id: str
    answer: TryResult
    age_ms: int
    url: str


def fetch_deliveries(cursor: Cursor[Any], ids: Iterable[str]) -> dict[str, DeliveryState]:
    """What the database knows of these deliveries, by id."""
    return {delivery.id: delivery for delivery in map(_delivery, _LOOK.all_rows(cursor, [array(ids)]))}


def record_tries(cursor: Cursor[Any], tries: Sequence[ScheduledTry]) -> dict[str, datetime | None]:
    """Writes down tries of different deliveries and moves those on that still stand at that step.

    Returns when each of those is due next; another process was faster with the rest.
    """
    tries = sorted(tries, key=lambda one: one.delivery_id)
    values = [
        array(one.delivery_id for one in tries),
        array(str(one.step) for one in tries),
        *_answers([one.answer for one in tries], [one.age_ms for one in tries]),
        array(one.decision.status for one in tries),
        array(str(one.decision.next_step) for one in tries),
        array(None if one.decision.wait_s is None else str(one.decision.wait_s) for one in tries),
    ]
    return {_text(row[0]): _moment(row[1]) for row in _RECORD.all_rows(cursor, values)}


def record_resends(cursor: Cursor[Any], tries: Sequence[ResendTry]) -> None:
    """Writes down resends of different deliveries, each once."""
    tries = sorted(tries, key=lambda one: one.delivery_id)
    values = [
        array(one.delivery_id for one in tries),
        array(one.resend_id for one in tries),
        *_answers([one.answer for one in tries], [one.age_ms for one in tries]),
        array(_hexadecimal(one.url.encode()) for one in tries),
    ]
    _RECORD_RESENDS.all_rows(cursor, values)


def find_recorded_resends(cursor: Cursor[Any], resends: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Which of these (delivery, resend) have been sent and written down already."""
    deliveries, ids = zip(*resends, strict=True)
    rows = _MET_RESENDS.all_rows(cursor, [array(deliveries), array(ids)])
    return {(_text(row[0]), _text(row[1])) for row in rows}


def fail_without_url(cursor: Cursor[Any], ids: Iterable[str]) -> int:
    """Nothing is sent any more where the URL was removed: these end as failed. Returns how many were pending."""
    return len(_END_WITHOUT_URL.all_rows(cursor, [array(sorted(ids))]))


def set_aside(cursor: Cursor[Any], ids: Iterable[str]) -> int:
    """They stay pending; the scheduler puts them back once their application is resumed."""
    return len(_PARK.all_rows(cursor, [array(sorted(ids))]))


def _answers(answers: Sequence[TryResult], ages_ms: Sequence[int]) -> list[bytes]:
    return [
        array(map(str, ages_ms)),
        array(str(answer.duration_ms) for answer in answers),
        array(None if answer.status_code is None else str(answer.status_code) for answer in answers),
        array(answer.failure for answer in answers),
        array(_hexadecimal(answer.body) for answer in answers),
    ]


def _hexadecimal(data: bytes) -> str:
    return f'"\\\\x{data.hex()}"'


def _delivery(row: Row) -> DeliveryState:
    delivery_id, application_id, intent_uuid, event, status, step, due_at, url, version, *now = row
    now_url, now_version, is_paused, due_in_s, ended_without_url = now
    return DeliveryState(
        _text(delivery_id),
        _text(application_id),
        _text(intent_uuid),
        _text(event),
        _STATUSES[_text(status)],
        int(step or 0),
        due_at,
        DeliveryTarget(_text(url), int(version or 0)),
        None if now_url is None else DeliveryTarget(_text(now_url), int(now_version or 0)),
        is_paused == b"t",
        float(due_in_s or 0),
        ended_without_url == b"t",
    )


def _text(value: bytes | None) -> str:
    assert value is not None
    return value.decode()


def _moment(value: bytes | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value.decode())

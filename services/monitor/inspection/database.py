"""Reads figures from the database with a few bounded statements, cheap on empty and on huge tables."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.monitor.inspection.failing_endpoints import count_failing_applications
from services.monitor.inspection.snapshots import (
    AttemptFigures,
    Backlog,
    BoundedCount,
    DatabaseSnapshot,
    DeliveryFigures,
    DismissedRecord,
    PaymentFigures,
)
from shared.domain.applications.modes import ApplicationMode
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.uuids import uuid7_datetime

MAX_ROWS = 20_000
"""How many rows of a kind one read counts at most."""
_TIMEOUT = "3s"

BOUNDS_SQL = """
select mizan_now(), uuid7_floor(mizan_now() - interval '1 hour') as hour,
       uuid7_floor(mizan_now() - interval '5 minutes') as five_minutes,
       uuid7_floor(mizan_now() - interval '1 minute') as minute"""
OUTBOX_SQL = f"""
select (select count(*) from (select from outbox limit {MAX_ROWS + 1}) as counted),
       (select extract(epoch from clock_timestamp() - created_at)::float8 from outbox order by id limit 1)"""
MODE_SQL = "select exists (select from applications where mode = 'live')"
# Rows of both modes are read up to the limit, those of the wanted mode are counted. A subquery for each row is always
# answered by index; a join may be planned as a scan when statistics are missing.
CREATED_SQL = f"""
select count(*), count(*) filter (where mode = %(mode)s),
       count(*) filter (where mode = %(mode)s and uuid >= %(minute)s)
from (select uuid, (select mode from applications where id = application_id) as mode from payment_intents
      where uuid >= %(hour)s order by uuid desc limit {MAX_ROWS + 1}) as newest"""
EVENTS_SQL = f"""
select type, count(*), count(*) filter (where mode = %(mode)s),
       count(*) filter (where mode = %(mode)s and id >= %(five_minutes)s)
from (select id, type, (select mode from payment_intents join applications on applications.id = application_id
                        where uuid = intent_uuid) as mode
      from intent_events where id >= %(hour)s order by id desc limit {MAX_ROWS + 1}) as newest
group by type"""
ATTEMPTS_SQL = f"""
select state, count(*), count(*) filter (where (provider = 'sandbox') = (%(mode)s = 'test'))
from (select state, provider from payment_attempts
      where id >= %(hour)s order by id desc limit {MAX_ROWS + 1}) as newest
group by state"""
# Each state is limited separately: abandoned redirects are many and must not crowd out the others.
IN_PROGRESS_SQL = f"""
select wanted.state, next_verify_at is null and wanted.state = 'unknown' as is_undecided, count(*),
       extract(epoch from mizan_now() - min(since))::float8
from unnest(array['awaiting_redirect', 'sent', 'unknown']) as wanted (state)
cross join lateral (
    select next_verify_at, coalesce(sent_at, created_at) as since from payment_attempts
    where state = wanted.state and state in ('awaiting_redirect', 'sent', 'unknown')
    order by id limit {MAX_ROWS + 1}) as open
group by 1, 2"""
DUPLICATES_SQL = f"""
select count(*) from (select from payment_attempts where state = 'duplicate' and handled_at is null
                      limit {MAX_ROWS + 1}) as open"""
LATE_SQL = """
select (select extract(epoch from mizan_now() - expires_at)::float8 from payment_intents
        where status = 'requires_payment_method' order by expires_at limit 1),
       (select id from intent_events
        where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled')
        order by id limit 1)"""
PENDING_SQL = f"""
select application_id, step, set_aside_at is not null as is_set_aside, count(*), min(next_due_at),
       count(*) filter (where tries > 0)
from (select application_id, step, set_aside_at, next_due_at, tries from webhook_deliveries
      where next_due_at is not null order by next_due_at, id limit {MAX_ROWS + 1}) as ahead
group by 1, 2, 3"""
RECENT_SQL = f"""
select status, count(*), sum(tries)
from (select status, tries from webhook_deliveries where id >= %(hour)s order by id desc limit {MAX_ROWS + 1}) as newest
group by status"""
SET_ASIDE_SQL = f"""
select count(*) from (select from webhook_deliveries where set_aside_at is not null limit {MAX_ROWS + 1}) as counted"""
DISMISSED_SQL = f"""
select topic_id, record_offset from dead_letter_dismissals where dismissed_at >= mizan_now() - interval '25 hours'
order by dismissed_at desc limit {MAX_ROWS}"""
PAUSED_SQL = f"select id from applications where webhooks_paused_at is not null limit {MAX_ROWS}"


def read_database(database: Database) -> DatabaseSnapshot:
    """Return current figures. Raises DatabaseUnavailableError."""
    with database.transaction() as connection:
        read_in_index_order(connection)
        connection.execute(f"set local statement_timeout = '{_TIMEOUT}'".encode())
        now, hour, five_minutes, minute = _row(connection, BOUNDS_SQL, {})
        (has_live,) = _row(connection, MODE_SQL, {})
        mode = ApplicationMode.LIVE if has_live else ApplicationMode.TEST
        values = {"hour": hour, "five_minutes": five_minutes, "minute": minute, "mode": mode}
        paused = {row[0] for row in connection.execute(PAUSED_SQL.encode())}
        pending = connection.execute(PENDING_SQL.encode()).fetchall()
        expiry_late_s, oldest_unprocessed = _row(connection, LATE_SQL, {})
        return DatabaseSnapshot(
            now=now,
            outbox=_outbox(connection),
            payments=_payments(connection, values),
            attempts=_attempts(connection),
            expiry_late_s=max(0.0, expiry_late_s or 0.0),
            intake_age_s=_age(now, oldest_unprocessed and uuid7_datetime(oldest_unprocessed)),
            deliveries=_deliveries(connection, values, pending, paused, now),
            paused_applications=len(paused),
            failing_applications=count_failing_applications(connection, _applications_with_retries(pending)),
            dismissed=[DismissedRecord(*row) for row in connection.execute(DISMISSED_SQL.encode())],
        )


def _outbox(connection: Connection[Any]) -> Backlog:
    rows, oldest_age_s = _row(connection, OUTBOX_SQL, {})
    return Backlog(min(rows, MAX_ROWS), max(0.0, oldest_age_s or 0.0), rows > MAX_ROWS)


def _payments(connection: Connection[Any], values: dict[str, Any]) -> PaymentFigures:
    intents_read, created, in_a_minute = _row(connection, CREATED_SQL, values)
    events = connection.execute(EVENTS_SQL.encode(), values).fetchall()
    of_type = {kind: (count, in_5_minutes) for kind, _, count, in_5_minutes in events}
    paid, paid_in_5_minutes = of_type.get("payment_intent.succeeded", (0, 0))
    states = connection.execute(ATTEMPTS_SQL.encode(), values).fetchall()
    attempts = {state: count for state, _, count in states}
    return PaymentFigures(
        mode=values["mode"],
        created=_bounded(created, intents_read),
        created_in_a_minute=in_a_minute,
        paid=_bounded(paid, sum(read for _, read, _, _ in events)),
        paid_in_5_minutes=paid_in_5_minutes,
        expired=of_type.get("payment_intent.canceled", (0, 0))[0],
        attempts=_bounded(sum(attempts.values()), sum(read for _, read, _ in states)),
        attempts_paid=attempts.get("paid", 0) + attempts.get("duplicate", 0),
        attempts_declined=attempts.get("declined", 0),
    )


def _attempts(connection: Connection[Any]) -> AttemptFigures:
    in_progress = {"sent": 0, "unknown": 0}
    oldest_age_s = 0.0
    undecided, awaiting_redirect = Backlog(), BoundedCount()
    for state, is_undecided, count, state_oldest_age_s in connection.execute(
        IN_PROGRESS_SQL.encode()
    ).fetchall():
        if state == "awaiting_redirect":
            awaiting_redirect = _bounded(count)
            continue
        in_progress[state] += count
        if is_undecided:
            undecided = Backlog(min(count, MAX_ROWS), state_oldest_age_s, count > MAX_ROWS)
        else:
            oldest_age_s = max(oldest_age_s, state_oldest_age_s)
    (duplicates,) = _row(connection, DUPLICATES_SQL, {})
    return AttemptFigures(in_progress, oldest_age_s, undecided, awaiting_redirect, _bounded(duplicates))


def _deliveries(
    connection: Connection[Any],
    values: dict[str, Any],
    pending: Sequence[Any],
    paused: set[UUID],
    now: datetime,
) -> DeliveryFigures:
    steps: Counter[int] = Counter()
    for _, step, _, count, _, _ in pending:
        steps[step] += count
    due = [
        first
        for application, _, is_set_aside, _, first, _ in pending
        if not is_set_aside and application not in paused
    ]
    recent = {
        status: (count, tries) for status, count, tries in connection.execute(RECENT_SQL.encode(), values)
    }
    (set_aside,) = _row(connection, SET_ASIDE_SQL, {})
    return DeliveryFigures(
        pending=dict(sorted(steps.items())),
        has_more=steps.total() > MAX_ROWS,
        overdue_s=_age(now, min(due, default=None)),
        set_aside=_bounded(set_aside),
        succeeded=recent.get("succeeded", (0, 0))[0],
        failed=recent.get("failed", (0, 0))[0],
        tries=sum(tries for _, tries in recent.values()),
    )


def _applications_with_retries(pending: Sequence[Any]) -> list[UUID]:
    """Return the applications whose pending deliveries were tried, those with most of them first."""
    tried: Counter[UUID] = Counter()
    for application, _, _, _, _, count in pending:
        tried[application] += count
    return [application for application, count in tried.most_common() if count]


def _row(connection: Connection[Any], statement: str, values: dict[str, Any]) -> Any:
    row = connection.execute(statement.encode(), values).fetchone()
    assert row is not None
    return row


def _bounded(count: int, rows_read: int | None = None) -> BoundedCount:
    """Return a count of rows. `rows_read` is given if not all rows that were read are counted."""
    return BoundedCount(min(count, MAX_ROWS), (count if rows_read is None else rows_read) > MAX_ROWS)


def _age(now: datetime, since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())

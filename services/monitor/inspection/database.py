"""Looks into the database: a few bounded statements, cheap with an empty and with a huge table."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.monitor.inspection.snapshots import Attempts, Counted, Deliveries, Figures, Payments, Waiting
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.uuids import uuid7_datetime

MOST = 20_000
"""Rows of a kind that a look reads at most."""
MOST_FAILING = 200
FAILED_AT_LEAST = 5
"""So many deliveries that failed lately make an endpoint a failing one, if none arrived."""
_TIMEOUT = "3s"

BOUNDS_SQL = """
select mizan_now(), uuid7_floor(mizan_now() - interval '1 hour') as hour,
       uuid7_floor(mizan_now() - interval '5 minutes') as five_minutes,
       uuid7_floor(mizan_now() - interval '1 minute') as minute, mizan_now() - interval '15 minutes' as lately"""
OUTBOX_SQL = f"""
select (select count(*) from (select from outbox limit {MOST + 1}) as counted),
       (select extract(epoch from clock_timestamp() - created_at)::float8 from outbox order by id limit 1)"""
CREATED_SQL = f"""
select count(*), count(*) filter (where uuid >= %(minute)s)
from (select uuid from payment_intents where uuid >= %(hour)s order by uuid desc limit {MOST + 1}) as newest"""
EVENTS_SQL = f"""
select type, count(*), count(*) filter (where id >= %(five_minutes)s)
from (select id, type from intent_events where id >= %(hour)s order by id desc limit {MOST + 1}) as newest
group by type"""
ATTEMPTS_SQL = f"""
select state, count(*)
from (select state from payment_attempts where id >= %(hour)s order by id desc limit {MOST + 1}) as newest
group by state"""
# Each state by itself: those who left a provider's page are many, and must not hide the others.
UNDER_WAY_SQL = f"""
select wanted.state, next_verify_at is null and wanted.state = 'unknown' as is_undecided, count(*),
       extract(epoch from mizan_now() - min(since))::float8
from unnest(array['awaiting_redirect', 'sent', 'unknown']) as wanted (state)
cross join lateral (
    select next_verify_at, coalesce(sent_at, created_at) as since from payment_attempts
    where state = wanted.state and state in ('awaiting_redirect', 'sent', 'unknown')
    order by id limit {MOST + 1}) as open
group by 1, 2"""
DUPLICATES_SQL = f"""
select count(*) from (select from payment_attempts where state = 'duplicate' and handled_at is null
                      limit {MOST + 1}) as open"""
LATE_SQL = """
select (select extract(epoch from mizan_now() - expires_at)::float8 from payment_intents
        where status = 'requires_payment_method' order by expires_at limit 1),
       (select id from intent_events
        where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled')
        order by id limit 1)"""
PENDING_SQL = f"""
select application_id, step, set_aside_at is not null as is_set_aside, count(*), min(next_due_at),
       count(*) filter (where tries > 0 and updated_at >= %(lately)s)
from (select application_id, step, set_aside_at, next_due_at, tries, updated_at from webhook_deliveries
      where next_due_at is not null order by next_due_at, id limit {MOST + 1}) as ahead
group by 1, 2, 3"""
RECENT_SQL = f"""
select status, count(*), sum(tries)
from (select status, tries from webhook_deliveries where id >= %(hour)s order by id desc limit {MOST + 1}) as newest
group by status"""
PARKED_SQL = f"""
select count(*) from (select from webhook_deliveries where set_aside_at is not null limit {MOST + 1}) as parked"""
PAUSED_SQL = f"select id from applications where webhooks_paused_at is not null limit {MOST}"
FAILING_SQL = """
select count(*) from unnest(%(suspects)s::uuid[]) as suspect (id)
where not exists (
    select from (select status, updated_at from webhook_deliveries where application_id = suspect.id
                 order by id desc limit 100) as newest
    where status = 'succeeded' and updated_at >= %(lately)s)"""


def look_at_database(database: Database) -> Figures:
    with database.transaction() as connection:
        read_in_index_order(connection)
        connection.execute(f"set local statement_timeout = '{_TIMEOUT}'".encode())
        now, hour, five_minutes, minute, lately = _row(connection, BOUNDS_SQL, {})
        values = {"hour": hour, "five_minutes": five_minutes, "minute": minute, "lately": lately}
        paused = {row[0] for row in connection.execute(PAUSED_SQL.encode())}
        pending = connection.execute(PENDING_SQL.encode(), values).fetchall()
        expiry_late_s, not_taken_in = _row(connection, LATE_SQL, {})
        return Figures(
            now=now,
            outbox=_outbox(connection),
            payments=_payments(connection, values),
            attempts=_attempts(connection),
            expiry_late_s=max(0.0, expiry_late_s or 0.0),
            not_taken_in_s=_age(now, not_taken_in and uuid7_datetime(not_taken_in)),
            deliveries=_deliveries(connection, values, pending, paused, now),
            paused=len(paused),
            failing=_failing(connection, pending, paused, lately),
        )


def _outbox(connection: Connection[Any]) -> Waiting:
    rows, oldest_s = _row(connection, OUTBOX_SQL, {})
    return Waiting(min(rows, MOST), max(0.0, oldest_s or 0.0), rows > MOST)


def _payments(connection: Connection[Any], values: dict[str, Any]) -> Payments:
    created, in_a_minute = _row(connection, CREATED_SQL, values)
    events = {
        kind: (count, lately)
        for kind, count, lately in connection.execute(EVENTS_SQL.encode(), values).fetchall()
    }
    paid, paid_lately = events.get("payment_intent.succeeded", (0, 0))
    attempts: dict[str, int] = dict(connection.execute(ATTEMPTS_SQL.encode(), values).fetchall())
    return Payments(
        created=_counted(created),
        created_in_a_minute=in_a_minute,
        paid=Counted(paid, sum(count for count, _ in events.values()) > MOST),
        paid_in_5_minutes=paid_lately,
        expired=events.get("payment_intent.canceled", (0, 0))[0],
        attempts=_counted(sum(attempts.values())),
        attempts_paid=attempts.get("paid", 0) + attempts.get("duplicate", 0),
        attempts_declined=attempts.get("declined", 0),
    )


def _attempts(connection: Connection[Any]) -> Attempts:
    under_way = {"sent": 0, "unknown": 0}
    oldest_s = 0.0
    undecided, on_pages = Waiting(), Counted()
    for state, is_undecided, count, state_oldest_s in connection.execute(UNDER_WAY_SQL.encode()).fetchall():
        if state == "awaiting_redirect":
            on_pages = _counted(count)
            continue
        under_way[state] += count
        if is_undecided:
            undecided = Waiting(min(count, MOST), state_oldest_s, count > MOST)
        else:
            oldest_s = max(oldest_s, state_oldest_s)
    (duplicates,) = _row(connection, DUPLICATES_SQL, {})
    return Attempts(under_way, oldest_s, undecided, on_pages, _counted(duplicates))


def _deliveries(
    connection: Connection[Any],
    values: dict[str, Any],
    pending: Sequence[Any],
    paused: set[UUID],
    now: datetime,
) -> Deliveries:
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
    (parked,) = _row(connection, PARKED_SQL, {})
    return Deliveries(
        pending=dict(sorted(steps.items())),
        is_more=steps.total() > MOST,
        overdue_s=_age(now, min(due, default=None)),
        parked=_counted(parked),
        succeeded=recent.get("succeeded", (0, 0))[0],
        failed=recent.get("failed", (0, 0))[0],
        tries=sum(tries for _, tries in recent.values()),
        is_cut=sum(count for count, _ in recent.values()) > MOST,
    )


def _failing(connection: Connection[Any], pending: Sequence[Any], paused: set[UUID], lately: datetime) -> int:
    failed: Counter[UUID] = Counter()
    for application, _, _, _, _, failed_lately in pending:
        failed[application] += failed_lately
    suspects = [
        application
        for application, count in failed.most_common(MOST_FAILING)
        if count >= FAILED_AT_LEAST and application not in paused
    ]
    if not suspects:
        return 0
    (failing,) = _row(connection, FAILING_SQL, {"suspects": suspects, "lately": lately})
    return int(failing)


def _row(connection: Connection[Any], statement: str, values: dict[str, Any]) -> Any:
    row = connection.execute(statement.encode(), values).fetchone()
    assert row is not None
    return row


def _counted(count: int) -> Counted:
    return Counted(min(count, MOST), count > MOST)


def _age(now: datetime, since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())

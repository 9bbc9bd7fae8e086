"""Bulk resends: resend all failed deliveries of a period, of one application or of all.

Bulk resends are started here, and the scheduler works through them, a few deliveries at a time. It skips deliveries
that somebody resent meanwhile, and deliveries that failed after the bulk resend was started.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from time import monotonic
from typing import Any
from uuid import UUID, uuid4, uuid5

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.domain.deliveries.pause import check_can_send
from shared.domain.deliveries.try_results import FACET_SQL, matching_facets
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.errors import RefusedError

MAX_COUNTED = 10_000
FAILED_FACETS = matching_facets("failed")
# Well within the time limit of a transaction, which thousands of applications would exceed.
_TIME_LIMIT_S = 8.0


class BulkResendOutcome(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    NO_URL = "no_url"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class FailedCount:
    count: int
    is_exact: bool
    """False if there are more than MAX_COUNTED."""


@dataclass(frozen=True, slots=True)
class BulkResend:
    """A row of bulk_resends: the bulk resend of one application, with its progress."""

    id: UUID
    since: datetime
    until: datetime
    found: int
    is_count_exact: bool
    """False if there were more than MAX_COUNTED."""
    last_delivery_id: UUID
    """The last delivery that was processed. The oldest are processed first."""
    resent: int
    created_at: datetime
    finished_at: datetime | None
    outcome: BulkResendOutcome | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", self.outcome and BulkResendOutcome(self.outcome))


@dataclass(frozen=True, slots=True)
class StartedBulkResend:
    application_id: UUID
    application: str
    bulk: BulkResend


@dataclass(frozen=True, slots=True)
class RefusedBulkResend:
    application_id: UUID
    application: str
    why: str


@dataclass(frozen=True, slots=True)
class BulkResendSummary:
    """What `resend_all_exhausted` did for each application with failed deliveries."""

    started: Sequence[StartedBulkResend]
    refused: Sequence[RefusedBulkResend]
    is_all: bool = True
    """False if time ran out before the last application. Calling it again with the same id continues."""


class NothingFailedError(RefusedError):
    def __init__(self) -> None:
        super().__init__("no delivery of this period has failed")


class BulkResendInProgressError(RefusedError):
    """An application can have only one bulk resend at a time."""

    def __init__(self, running_id: UUID) -> None:
        super().__init__("failed deliveries of this application are being resent already")
        self.running_id = running_id


class BulkResendNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is no such bulk resend")


# Test deliveries are left out. Facet and id are compared and ordered as pairs, so that the planner can use no other
# index than the one on facets.
FAILED_OF_FACET_SQL = f"""
select id from webhook_deliveries
where application_id = %(application)s and id > %(after_id)s and id < %(before_id)s
  and ({FACET_SQL}, id) > (wanted.facet, %(after_id)s) and ({FACET_SQL}, id) < (wanted.facet, %(before_id)s)
  and not is_test and updated_at <= %(requested_at)s
order by {FACET_SQL}, id"""
COUNT_SQL = f"""
select count(*) from (
    select from unnest(%(facets)s::smallint[]) as wanted (facet)
    cross join lateral ({FAILED_OF_FACET_SQL} offset 0) as failed limit {MAX_COUNTED + 1}) as counted"""
# Compared as pairs for the same reason.
_APPLICATIONS_WITH_FAILED = f"""
select a.id, a.name from applications as a
where exists (
    select from unnest(%(facets)s::smallint[]) as wanted (facet)
    cross join lateral (
        select from webhook_deliveries
        where application_id = a.id and id > uuid7_floor(%(since)s) and id < uuid7_floor(%(until)s)
          and ({FACET_SQL}, id) > (wanted.facet, uuid7_floor(%(since)s))
          and ({FACET_SQL}, id) < (wanted.facet, uuid7_floor(%(until)s)) and not is_test
        limit 1) as failed
    offset 0)
order by a.id"""
_PERIOD = "select uuid7_floor(%s), uuid7_floor(%s), mizan_now()"
_INSERT = """
insert into bulk_resends (id, application_id, since, until, found, is_count_exact, last_delivery_id)
values (%(id)s, %(application)s, %(since)s, %(until)s, %(found)s, %(is_count_exact)s, uuid7_floor(%(since)s))
on conflict do nothing"""
_SELECT = """
select id, since, until, found, is_count_exact, last_delivery_id, resent, created_at, finished_at, outcome
from bulk_resends"""
_GET = f"{_SELECT} where id = %s and application_id = %s"
_RUNNING = f"{_SELECT} where application_id = %s and finished_at is null"
_LATEST = f"{_SELECT} where application_id = %s order by created_at desc limit 5"
_ALL_RUNNING = "select application_id, id from bulk_resends where finished_at is null"
_STOP = """
update bulk_resends set finished_at = mizan_now(), outcome = 'stopped'
where id = %s and application_id = %s and finished_at is null"""


def count_failed(
    connection: Connection[Any], application_id: UUID, since: datetime, until: datetime
) -> FailedCount:
    """Count the failed deliveries whose events happened in this period, up to MAX_COUNTED."""
    read_in_index_order(connection)
    period = connection.execute(_PERIOD, (since, until)).fetchone()
    assert period is not None
    values = {
        "application": application_id,
        "facets": FAILED_FACETS,
        "after_id": period[0],
        "before_id": period[1],
        "requested_at": period[2],
    }
    row = connection.execute(COUNT_SQL, values).fetchone()
    assert row is not None
    return FailedCount(min(row[0], MAX_COUNTED), is_exact=row[0] <= MAX_COUNTED)


def start_bulk_resend(
    connection: Connection[Any], application_id: UUID, bulk_id: UUID, since: datetime, until: datetime
) -> tuple[BulkResend, bool]:
    """Start a bulk resend. Returns it, and whether this call started it.

    `bulk_id` makes this idempotent: a second call with the same id returns the first bulk resend and False.
    Raises SendingRefusedError, NothingFailedError, BulkResendInProgressError, or BulkResendNotFoundError if the id
    belongs to another application.
    """
    known = _find(connection, application_id, bulk_id)
    if known is not None:
        return known, False
    check_can_send(connection, application_id)
    failed = count_failed(connection, application_id, since, until)
    if failed.count == 0:
        raise NothingFailedError
    values = {
        "id": bulk_id,
        "application": application_id,
        "since": since,
        "until": until,
        "found": failed.count,
        "is_count_exact": failed.is_exact,
    }
    is_started = connection.execute(_INSERT, values).rowcount > 0
    known = _find(connection, application_id, bulk_id)
    if known is not None:
        return known, is_started
    running = find_running_bulk_resend(connection, application_id)
    if running is None:
        raise BulkResendNotFoundError
    raise BulkResendInProgressError(running.id)


def stop_bulk_resend(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> bool:
    """Stop a bulk resend. Resends that are in the outbox are still sent. Returns False if it had ended before."""
    return connection.execute(_STOP, (bulk_id, application_id)).rowcount > 0


def get_bulk_resend(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> BulkResend:
    """Raises BulkResendNotFoundError."""
    found = _find(connection, application_id, bulk_id)
    if found is None:
        raise BulkResendNotFoundError
    return found


def find_running_bulk_resend(connection: Connection[Any], application_id: UUID) -> BulkResend | None:
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_RUNNING, (application_id,)).fetchone()


def list_latest_bulk_resends(connection: Connection[Any], application_id: UUID) -> Sequence[BulkResend]:
    """Return the last five, newest first."""
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_LATEST, (application_id,)).fetchall()


def resend_all_exhausted(
    connection: Connection[Any],
    since: datetime,
    until: datetime,
    actor: Actor,
    request_id: UUID | None = None,
) -> BulkResendSummary:
    """Start a bulk resend for each application with deliveries that failed in this period.

    `request_id` makes this idempotent: a second call with the same id starts nothing twice, and continues with the
    applications that the first had no time for.
    """
    request_id = request_id or uuid4()
    deadline = monotonic() + _TIME_LIMIT_S
    running = dict(connection.execute(_ALL_RUNNING).fetchall())
    started: list[StartedBulkResend] = []
    refused: list[RefusedBulkResend] = []
    values = {"facets": FAILED_FACETS, "since": since, "until": until}
    for application_id, name in (
        read_in_index_order(connection).execute(_APPLICATIONS_WITH_FAILED, values).fetchall()
    ):
        bulk_id = uuid5(request_id, str(application_id))
        if running.get(application_id, bulk_id) != bulk_id:
            refused.append(RefusedBulkResend(application_id, name, str(BulkResendInProgressError(bulk_id))))
            continue
        if started and monotonic() > deadline:
            return BulkResendSummary(started, refused, is_all=False)
        try:
            bulk, is_new = start_bulk_resend(connection, application_id, bulk_id, since, until)
        except NothingFailedError:  # resent by now
            continue
        except RefusedError as error:
            refused.append(RefusedBulkResend(application_id, name, str(error)))
            continue
        started.append(StartedBulkResend(application_id, name, bulk))
        if is_new:
            _write_audit_log(connection, actor, application_id, bulk)
    return BulkResendSummary(started, refused)


def _find(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> BulkResend | None:
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_GET, (bulk_id, application_id)).fetchone()


def _write_audit_log(
    connection: Connection[Any], actor: Actor, application_id: UUID, bulk: BulkResend
) -> None:
    details: AuditDetails = {
        "resend": str(bulk.id),
        "count": bulk.found if bulk.is_count_exact else f">{bulk.found}",
        "from": bulk.since.isoformat(timespec="minutes"),
        "until": bulk.until.isoformat(timespec="minutes"),
    }
    add_audit_entry(
        connection, actor, Action.FAILED_DELIVERIES_RESENT, application_id=application_id, details=details
    )

"""Bulk resends: resend all failed deliveries of a period, of one application or of all; or all that wait for their
next try.

Bulk resends are started here, and the scheduler works through them, a few deliveries at a time. It skips failed
deliveries that somebody resent meanwhile or that failed after the bulk resend was started, and waiting ones that
succeeded meanwhile or were not tried before it was started.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from time import monotonic
from typing import Any
from uuid import UUID, uuid4, uuid5

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.domain.deliveries.bulk_selection import (
    FACETS,
    BulkResendKind,
    count_of_period,
    oldest_waiting_at,
)
from shared.domain.deliveries.pause import check_can_send
from shared.domain.deliveries.try_results import FACET_SQL
from shared.platform.database.pool import fetch_scalar
from shared.platform.database.stable_plans import read_in_index_order
from shared.platform.errors import RefusedError

# Well within the time limit of a transaction, which thousands of applications would exceed.
_TIME_LIMIT_S = 8.0
# A bulk resend of waiting deliveries ends with those of this moment. Clocks may differ, and later ones are left out
# anyway: they were not tried yet when it was requested.
_CLOCK_TOLERANCE = timedelta(minutes=1)


class BulkResendOutcome(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    NO_URL = "no_url"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class BulkResend:
    """A row of bulk_resends: the bulk resend of one application, with its progress."""

    id: UUID
    kind: BulkResendKind
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
        object.__setattr__(self, "kind", BulkResendKind(self.kind))
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


class NothingWaitingError(RefusedError):
    def __init__(self) -> None:
        super().__init__("no delivery waits for its next try")


class BulkResendInProgressError(RefusedError):
    """An application can have only one bulk resend at a time."""

    def __init__(self, running_id: UUID) -> None:
        super().__init__("deliveries of this application are being resent already")
        self.running_id = running_id


class BulkResendNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is no such bulk resend")


# Facet and id are compared as pairs, so that the planner can use no other index than the one on facets.
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
_INSERT = """
insert into bulk_resends (id, application_id, kind, since, until, found, is_count_exact, last_delivery_id)
values (%(id)s, %(application)s, %(kind)s, %(since)s, %(until)s, %(found)s, %(is_count_exact)s, uuid7_floor(%(since)s))
on conflict do nothing"""
_SELECT = """
select id, kind, since, until, found, is_count_exact, last_delivery_id, resent, created_at, finished_at, outcome
from bulk_resends"""
_GET = f"{_SELECT} where id = %s and application_id = %s"
_RUNNING = f"{_SELECT} where application_id = %s and finished_at is null"
_LATEST = f"{_SELECT} where application_id = %s order by created_at desc limit 5"
_ALL_RUNNING = "select application_id, id from bulk_resends where finished_at is null"
_STOP = """
update bulk_resends set finished_at = mizan_now(), outcome = 'stopped'
where id = %s and application_id = %s and finished_at is null"""


def start_bulk_resend(
    connection: Connection[Any], application_id: UUID, bulk_id: UUID, since: datetime, until: datetime
) -> tuple[BulkResend, bool]:
    """Start a bulk resend of failed deliveries. Returns it, and whether this call started it.

    `bulk_id` makes this idempotent: a second call with the same id returns the first bulk resend and False.
    Raises SendingRefusedError, NothingFailedError, BulkResendInProgressError, or BulkResendNotFoundError if the id
    belongs to another application.
    """
    known = _find(connection, application_id, bulk_id)
    if known is not None:
        return known, False
    check_can_send(connection, application_id)
    return _insert(connection, application_id, bulk_id, kind=BulkResendKind.FAILED, since=since, until=until)


def start_waiting_resend(
    connection: Connection[Any], application_id: UUID, bulk_id: UUID
) -> tuple[BulkResend, bool]:
    """Start a bulk resend of all deliveries that wait for their next try, like `start_bulk_resend`.

    Raises the same, but NothingWaitingError if none waits.
    """
    known = _find(connection, application_id, bulk_id)
    if known is not None:
        return known, False
    check_can_send(connection, application_id)
    since = oldest_waiting_at(connection, application_id)
    if since is None:
        raise NothingWaitingError
    until = fetch_scalar(connection, "select mizan_now()") + _CLOCK_TOLERANCE
    return _insert(connection, application_id, bulk_id, kind=BulkResendKind.WAITING, since=since, until=until)


def _insert(
    connection: Connection[Any],
    application_id: UUID,
    bulk_id: UUID,
    *,
    kind: BulkResendKind,
    since: datetime,
    until: datetime,
) -> tuple[BulkResend, bool]:
    found = count_of_period(connection, application_id, kind, since, until)
    if found.count == 0:
        raise NothingFailedError if kind is BulkResendKind.FAILED else NothingWaitingError
    values = {
        "id": bulk_id,
        "application": application_id,
        "kind": kind,
        "since": since,
        "until": until,
        "found": found.count,
        "is_count_exact": found.is_exact,
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
    values = {"facets": FACETS[BulkResendKind.FAILED], "since": since, "until": until}
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

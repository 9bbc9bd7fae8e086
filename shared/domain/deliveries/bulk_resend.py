"""Resends all deliveries of a period that have failed: somebody asks for it here, and the scheduler does it, a few at
a time. What somebody resent meanwhile, or what failed only later, is left alone.
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


class BulkResendOutcome(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    NO_URL = "no_url"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class FailedCount:
    count: int
    is_all: bool
    """False: there are more than are counted."""


@dataclass(frozen=True, slots=True)
class BulkResend:
    id: UUID
    since: datetime
    until: datetime
    found: int
    is_count_exact: bool
    """False: there were more than were counted."""
    last_delivery_id: UUID
    """The delivery that was processed last; the oldest go first."""
    resent: int
    created_at: datetime
    finished_at: datetime | None
    outcome: BulkResendOutcome | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", self.outcome and BulkResendOutcome(self.outcome))


class NothingFailedError(RefusedError):
    def __init__(self) -> None:
        super().__init__("no delivery of this period has failed")


class BulkResendInProgressError(RefusedError):
    """One at a time."""

    def __init__(self, under_way: UUID) -> None:
        super().__init__("failed deliveries of this application are being resent already")
        self.under_way = under_way


class BulkResendNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is no such resending of failed deliveries")


# Tests are left out: nobody waits for them. Compared and ordered as pairs, which no other index can help with, they are
# found by the right one whatever the planner believes.
FAILED_OF_FACET_SQL = f"""
select id from webhook_deliveries
where application_id = %(application)s and id > %(after)s and id < %(behind)s
  and ({FACET_SQL}, id) > (wanted.facet, %(after)s) and ({FACET_SQL}, id) < (wanted.facet, %(behind)s)
  and not is_test and updated_at <= %(asked_at)s
order by {FACET_SQL}, id"""
COUNT_SQL = f"""
select count(*) from (
    select from unnest(%(facets)s::smallint[]) as wanted (facet)
    cross join lateral ({FAILED_OF_FACET_SQL} offset 0) as failed limit {MAX_COUNTED + 1}) as counted"""
_PERIOD = "select uuid7_floor(%s), uuid7_floor(%s), mizan_now()"
_BEGIN = """
insert into bulk_resends (id, application_id, since, until, found, is_count_exact, last_delivery_id)
values (%(id)s, %(application)s, %(since)s, %(until)s, %(found)s, %(is_count_exact)s, uuid7_floor(%(since)s))
on conflict do nothing"""
_COLUMNS = """
select id, since, until, found, is_count_exact, last_delivery_id, resent, created_at, finished_at, outcome
from bulk_resends"""
_GET = f"{_COLUMNS} where id = %s and application_id = %s"
_UNDER_WAY = f"{_COLUMNS} where application_id = %s and finished_at is null"
_LATEST = f"{_COLUMNS} where application_id = %s order by created_at desc limit 5"
_STOP = """
update bulk_resends set finished_at = mizan_now(), outcome = 'stopped'
where id = %s and application_id = %s and finished_at is null"""


def count_failed(
    connection: Connection[Any], application_id: UUID, since: datetime, until: datetime
) -> FailedCount:
    """Of this period, by when their events happened."""
    read_in_index_order(connection)
    period = connection.execute(_PERIOD, (since, until)).fetchone()
    assert period is not None
    values = {
        "application": application_id,
        "facets": FAILED_FACETS,
        "after": period[0],
        "behind": period[1],
        "asked_at": period[2],
    }
    row = connection.execute(COUNT_SQL, values).fetchone()
    assert row is not None
    return FailedCount(min(row[0], MAX_COUNTED), is_all=row[0] <= MAX_COUNTED)


def start_bulk_resend(
    connection: Connection[Any], application_id: UUID, bulk_id: UUID, since: datetime, until: datetime
) -> tuple[BulkResend, bool]:
    """`bulk_id` names the wish: who asks twice with one id gets the first, and False for not having begun it."""
    known = _find(connection, application_id, bulk_id)
    if known is not None:
        return known, False
    check_can_send(connection, application_id)
    found = count_failed(connection, application_id, since, until)
    if found.count == 0:
        raise NothingFailedError
    values = {
        "id": bulk_id,
        "application": application_id,
        "since": since,
        "until": until,
        "found": found.count,
        "is_count_exact": found.is_all,
    }
    has_begun = connection.execute(_BEGIN, values).rowcount > 0
    known = _find(connection, application_id, bulk_id)
    if known is not None:
        return known, has_begun
    under_way = find_running_bulk_resend(connection, application_id)
    if under_way is None:
        raise BulkResendNotFoundError  # the id is another application's
    raise BulkResendInProgressError(under_way.id)


def stop_bulk_resend(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> bool:
    """What is in the outbox is sent still. False: it had ended before."""
    return connection.execute(_STOP, (bulk_id, application_id)).rowcount > 0


def get_bulk_resend(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> BulkResend:
    found = _find(connection, application_id, bulk_id)
    if found is None:
        raise BulkResendNotFoundError
    return found


def find_running_bulk_resend(connection: Connection[Any], application_id: UUID) -> BulkResend | None:
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_UNDER_WAY, (application_id,)).fetchone()


def list_latest_bulk_resends(connection: Connection[Any], application_id: UUID) -> Sequence[BulkResend]:
    """The latest first."""
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_LATEST, (application_id,)).fetchall()


def _find(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> BulkResend | None:
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_GET, (bulk_id, application_id)).fetchone()


@dataclass(frozen=True, slots=True)
class StartedBulkResend:
    application_id: UUID
    application: str
    bulk: BulkResend
    """Its row of bulk_resends tells how far it is."""


@dataclass(frozen=True, slots=True)
class RefusedBulkResend:
    application_id: UUID
    application: str
    why: str


@dataclass(frozen=True, slots=True)
class BulkResendSummary:
    begun: Sequence[StartedBulkResend]
    refused: Sequence[RefusedBulkResend]
    is_all: bool = True
    """False: there are more applications, which the same wish goes on with."""


# Compared as pairs, so that only the index of facets can help.
_WHO_HAS_FAILED = f"""
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
_RUNNING_BY_APPLICATION = "select application_id, id from bulk_resends where finished_at is null"
# Well within the longest time of a transaction, which thousands of applications would take.
_TIME_LIMIT_S = 8.0


def resend_all_exhausted(
    connection: Connection[Any], since: datetime, until: datetime, actor: Actor, wish: UUID | None = None
) -> BulkResendSummary:
    """Of the events of this period. `wish` names the wish: the same twice begins once, and goes on where it stopped."""
    wish = wish or uuid4()
    deadline = monotonic() + _TIME_LIMIT_S
    under_way = dict(connection.execute(_RUNNING_BY_APPLICATION).fetchall())
    begun: list[StartedBulkResend] = []
    refused: list[RefusedBulkResend] = []
    values = {"facets": FAILED_FACETS, "since": since, "until": until}
    for application_id, name in read_in_index_order(connection).execute(_WHO_HAS_FAILED, values).fetchall():
        bulk_id = uuid5(wish, str(application_id))
        if under_way.get(application_id, bulk_id) != bulk_id:
            refused.append(RefusedBulkResend(application_id, name, str(BulkResendInProgressError(bulk_id))))
            continue
        if begun and monotonic() > deadline:
            return BulkResendSummary(begun, refused, is_all=False)
        try:
            bulk, is_new = start_bulk_resend(connection, application_id, bulk_id, since, until)
        except NothingFailedError:  # resent by now
            continue
        except RefusedError as error:
            refused.append(RefusedBulkResend(application_id, name, str(error)))
            continue
        begun.append(StartedBulkResend(application_id, name, bulk))
        if is_new:
            _note(connection, actor, application_id, bulk)
    return BulkResendSummary(begun, refused)


def _note(connection: Connection[Any], actor: Actor, application_id: UUID, bulk: BulkResend) -> None:
    details: AuditDetails = {
        "resend": str(bulk.id),
        "count": bulk.found if bulk.is_count_exact else f">{bulk.found}",
        "from": bulk.since.isoformat(timespec="minutes"),
        "until": bulk.until.isoformat(timespec="minutes"),
    }
    add_audit_entry(
        connection, actor, Action.FAILED_DELIVERIES_RESENT, application_id=application_id, details=details
    )

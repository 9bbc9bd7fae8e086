"""Resends all deliveries of a period that have failed: somebody asks for it here, and the scheduler does it, a few at
a time. What somebody resent meanwhile, or what failed only later, is left alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.deliveries.facets import FACET_SQL, facets
from shared.domain.deliveries.sendability import check_can_send
from shared.platform.database.index_order import read_in_order
from shared.platform.errors import RefusedError

MOST_COUNTED = 10_000
FAILED_FACETS = facets("failed")


class Outcome(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    NO_URL = "no_url"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Found:
    count: int
    is_all: bool
    """False: there are more than are counted."""


@dataclass(frozen=True, slots=True)
class BulkResend:
    id: UUID
    since: datetime
    until: datetime
    found: int
    is_all: bool
    """False: there were more than were counted."""
    reached: UUID
    """The delivery that was looked at last: the oldest go first."""
    resent: int
    created_at: datetime
    finished_at: datetime | None
    outcome: Outcome | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", self.outcome and Outcome(self.outcome))


class NothingFailedError(RefusedError):
    def __init__(self) -> None:
        super().__init__("no delivery of this period has failed")


class ResendingAlreadyError(RefusedError):
    """One at a time."""

    def __init__(self, under_way: UUID) -> None:
        super().__init__("failed deliveries of this application are being resent already")
        self.under_way = under_way


class BulkResendNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is no such resending of failed deliveries")


# Tests are left out: nobody waits for them. Compared and ordered as pairs, which no other index can help with, they are
# found by the right one whatever the planner believes.
OF_FACET_SQL = f"""
select id from webhook_deliveries
where application_id = %(application)s and id > %(reached)s and id < %(behind)s
  and ({FACET_SQL}, id) > (wanted.facet, %(reached)s) and ({FACET_SQL}, id) < (wanted.facet, %(behind)s)
  and not is_test and updated_at <= %(asked_at)s
order by {FACET_SQL}, id"""
COUNT_SQL = f"""
select count(*) from (
    select from unnest(%(facets)s::smallint[]) as wanted (facet)
    cross join lateral ({OF_FACET_SQL} offset 0) as failed limit {MOST_COUNTED + 1}) as counted"""
_PERIOD = "select uuid7_floor(%s), uuid7_floor(%s), mizan_now()"
_BEGIN = """
insert into bulk_resends (id, application_id, since, until, found, is_all, reached)
values (%(id)s, %(application)s, %(since)s, %(until)s, %(found)s, %(is_all)s, uuid7_floor(%(since)s))
on conflict do nothing"""
_COLUMNS = """
select id, since, until, found, is_all, reached, resent, created_at, finished_at, outcome from bulk_resends"""
_GET = f"{_COLUMNS} where id = %s and application_id = %s"
_UNDER_WAY = f"{_COLUMNS} where application_id = %s and finished_at is null"
_LATEST = f"{_COLUMNS} where application_id = %s order by created_at desc limit 5"
_STOP = """
update bulk_resends set finished_at = mizan_now(), outcome = 'stopped'
where id = %s and application_id = %s and finished_at is null"""


def count_failed(
    connection: Connection[Any], application_id: UUID, since: datetime, until: datetime
) -> Found:
    """Of this period, by when their events happened."""
    read_in_order(connection)
    period = connection.execute(_PERIOD, (since, until)).fetchone()
    assert period is not None
    values = {
        "application": application_id,
        "facets": FAILED_FACETS,
        "reached": period[0],
        "behind": period[1],
        "asked_at": period[2],
    }
    row = connection.execute(COUNT_SQL, values).fetchone()
    assert row is not None
    return Found(min(row[0], MOST_COUNTED), is_all=row[0] <= MOST_COUNTED)


def begin_resending_failed(
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
        "is_all": found.is_all,
    }
    has_begun = connection.execute(_BEGIN, values).rowcount > 0
    known = _find(connection, application_id, bulk_id)
    if known is not None:
        return known, has_begun
    under_way = find_under_way(connection, application_id)
    if under_way is None:
        raise BulkResendNotFoundError  # the id is another application's
    raise ResendingAlreadyError(under_way.id)


def stop_resending_failed(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> bool:
    """What is in the outbox is sent still. False: it had ended before."""
    return connection.execute(_STOP, (bulk_id, application_id)).rowcount > 0


def get_bulk_resend(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> BulkResend:
    found = _find(connection, application_id, bulk_id)
    if found is None:
        raise BulkResendNotFoundError
    return found


def find_under_way(connection: Connection[Any], application_id: UUID) -> BulkResend | None:
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_UNDER_WAY, (application_id,)).fetchone()


def list_latest(connection: Connection[Any], application_id: UUID) -> Sequence[BulkResend]:
    """The latest first."""
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_LATEST, (application_id,)).fetchall()


def _find(connection: Connection[Any], application_id: UUID, bulk_id: UUID) -> BulkResend | None:
    with connection.cursor(row_factory=class_row(BulkResend)) as cursor:
        return cursor.execute(_GET, (bulk_id, application_id)).fetchone()

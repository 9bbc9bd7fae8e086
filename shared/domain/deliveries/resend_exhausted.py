"""Resends one delivery that has used up its tries, or all that failed in a period: one bulk resend an application."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID, uuid4, uuid5

from psycopg import Connection

from shared.domain.audit_log import Action, Actor, Details, record
from shared.domain.deliveries.bulk_resend import (
    FAILED_FACETS,
    BulkResend,
    NothingFailedError,
    ResendingAlreadyError,
    begin_resending_failed,
)
from shared.domain.deliveries.facets import FACET_SQL
from shared.domain.deliveries.resend import application_of, request_resend
from shared.platform.database.index_order import read_in_order
from shared.platform.errors import RefusedError


@dataclass(frozen=True, slots=True)
class Begun:
    application_id: UUID
    application: str
    bulk: BulkResend
    """Its row of bulk_resends tells how far it is."""


@dataclass(frozen=True, slots=True)
class NotBegun:
    application_id: UUID
    application: str
    why: str


@dataclass(frozen=True, slots=True)
class ResendingAll:
    begun: Sequence[Begun]
    refused: Sequence[NotBegun]
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


def resend_exhausted(connection: Connection[Any], delivery_id: UUID, resend_id: UUID, actor: Actor) -> bool:
    """`resend_id` names the wish. Asking twice with one id sends once; the second time it returns False."""
    if not request_resend(connection, delivery_id, resend_id):
        return False
    record(
        connection,
        actor,
        Action.DELIVERY_RESENT,
        application_id=application_of(connection, delivery_id),
        details={"delivery": str(delivery_id)},
    )
    return True


def resend_all_exhausted(
    connection: Connection[Any], since: datetime, until: datetime, actor: Actor, wish: UUID | None = None
) -> ResendingAll:
    """Of the events of this period. `wish` names the wish: the same twice begins once, and goes on where it stopped."""
    wish = wish or uuid4()
    deadline = monotonic() + _TIME_LIMIT_S
    under_way = dict(connection.execute(_RUNNING_BY_APPLICATION).fetchall())
    begun: list[Begun] = []
    refused: list[NotBegun] = []
    values = {"facets": FAILED_FACETS, "since": since, "until": until}
    for application_id, name in read_in_order(connection).execute(_WHO_HAS_FAILED, values).fetchall():
        bulk_id = uuid5(wish, str(application_id))
        if under_way.get(application_id, bulk_id) != bulk_id:
            refused.append(NotBegun(application_id, name, str(ResendingAlreadyError(bulk_id))))
            continue
        if begun and monotonic() > deadline:
            return ResendingAll(begun, refused, is_all=False)
        try:
            bulk, is_new = begin_resending_failed(connection, application_id, bulk_id, since, until)
        except NothingFailedError:  # resent by now
            continue
        except RefusedError as error:
            refused.append(NotBegun(application_id, name, str(error)))
            continue
        begun.append(Begun(application_id, name, bulk))
        if is_new:
            _note(connection, actor, application_id, bulk)
    return ResendingAll(begun, refused)


def _note(connection: Connection[Any], actor: Actor, application_id: UUID, bulk: BulkResend) -> None:
    details: Details = {
        "resend": str(bulk.id),
        "count": bulk.found if bulk.is_all else f">{bulk.found}",
        "from": bulk.since.isoformat(timespec="minutes"),
        "until": bulk.until.isoformat(timespec="minutes"),
    }
    record(connection, actor, Action.FAILED_DELIVERIES_RESENT, application_id=application_id, details=details)

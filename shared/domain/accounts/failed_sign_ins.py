"""Failed sign-ins: recorded for the owners of the merchant and for operators, without anything that was typed.

There is one row for each account, reason, address and minute, with a count. Beyond some addresses of an account in one
minute, the others share one row. So a flood of failures fills few rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from prometheus_client import Counter
from psycopg import Connection

from shared.domain.audit_log import Action, AuditDetails, AuditEntry
from shared.platform.client_network import client_network
from shared.platform.database.pool import Database

FAILED = Counter("mizan_failed_sign_ins", "Sign-ins that failed", ["service", "reason"])
MAX_ADDRESSES = 20
"""Of one account, or of all unknown ones, in one minute."""


class FailureReason(StrEnum):
    WRONG_PASSWORD = "wrong_password"  # noqa: S105  the name of a reason
    UNKNOWN_ACCOUNT = "unknown_account"
    REMOVED = "removed"
    """The member or operator was removed."""
    NOT_JOINED = "not_joined"
    """The invitation was not accepted yet."""
    THROTTLED = "throttled"
    """The password was not looked at."""


@dataclass(frozen=True, slots=True)
class SignInFailure:
    reason: FailureReason
    person_id: UUID | None = None
    """The member or operator; None if there is no such account, or if the address was throttled."""
    merchant_id: UUID | None = None


# The count is not exact if several addresses come at the same moment. It only has to end somewhere.
_RECORD = """
insert into failed_sign_ins as known (minute, service, person_id, merchant_id, reason, address, expires_at)
select minute, %(service)s, %(person)s, %(merchant)s, %(reason)s,
       case when (select count(distinct address) from failed_sign_ins as other
                  where other.minute = this.minute and service = %(service)s
                    and person_id is not distinct from %(person)s and address <> %(address)s) < %(most)s
            then %(address)s end,
       minute + interval '1 minute'
from (select date_trunc('minute', mizan_now()) as minute) as this
on conflict on constraint failed_sign_ins_once do update set failures = known.failures + 1"""
_LIST = """
select f.id, f.at, p.email, f.address, f.service, f.reason, f.failures
from failed_sign_ins as f left join members as p on p.id = f.person_id
where f.merchant_id = %(merchant)s and f.id < coalesce(%(before)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by f.id desc limit %(limit)s"""
_LIST_OF_OPERATORS = """
select f.id, f.at, 'operator ' || p.email, f.address, f.service, f.reason, f.failures
from failed_sign_ins as f left join operators as p on p.id = f.person_id
where f.merchant_id is null and f.id < coalesce(%(before)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by f.id desc limit %(limit)s"""


def record_failed_sign_in(
    database: Database, service: str, address: str, failures: Iterable[SignInFailure]
) -> None:
    """Record and count one failed sign-in. There is one failure for each account that the email address has."""
    listed = list(failures)
    FAILED.labels(service, listed[0].reason).inc()
    # In the order of ids, like every other attempt, so that two at the same moment do not wait for each other.
    listed.sort(key=lambda failure: str(failure.person_id))
    with database.transaction() as connection:
        for failure in listed:
            values = {
                "service": service,
                "person": failure.person_id,
                "merchant": failure.merchant_id,
                "reason": failure.reason,
                "address": client_network(address),
                "most": MAX_ADDRESSES,
            }
            connection.execute(_RECORD, values)


def list_failed_sign_ins(
    connection: Connection[Any], merchant_id: UUID, *, before: UUID | None, limit: int
) -> list[AuditEntry]:
    """Return the failed sign-ins of a merchant's members before `before`, newest first."""
    rows = connection.execute(_LIST, {"merchant": merchant_id, "before": before, "limit": limit})
    return [_entry(row) for row in rows]


def list_operators_failed_sign_ins(
    connection: Connection[Any], *, before: UUID | None, limit: int
) -> list[AuditEntry]:
    """Return the failed sign-ins of operators and of nobody's account before `before`, newest first."""
    rows = connection.execute(_LIST_OF_OPERATORS, {"before": before, "limit": limit})
    return [_entry(row) for row in rows]


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    """Return a row as an entry of the audit log. Its actor is empty if there is no account."""
    entry_id, at, email, address, service, reason, failures = row
    details: AuditDetails = {"service": service, "reason": reason, "count": failures}
    return AuditEntry(entry_id, at, None, email or "", address, Action.SIGN_IN_FAILED, details)

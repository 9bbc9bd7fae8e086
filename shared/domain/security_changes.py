"""Security changes: entries of a merchant's audit log that every owner is told of, by mail and on the dashboard."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.accounts.roles import Role
from shared.domain.audit_log import Action, AuditEntry

SECURITY_ACTIONS = frozenset(
    {
        Action.APPLICATION_CREATED,
        Action.CREDENTIAL_ISSUED,
        Action.CREDENTIAL_REVOKED,
        Action.MEMBER_CREATED,
        Action.MEMBER_INVITED,
        Action.MEMBER_JOINED,
        Action.MEMBER_REMOVED,
        Action.PASSWORD_CHANGED,
        Action.PROVIDER_SET,
        Action.ROLE_CHANGED,
        Action.WEBHOOK_SECRET_ROLLED,
        Action.WEBHOOK_URL_REMOVED,
        Action.WEBHOOK_URL_SET,
    }
)
"""The index audit_log_security_changes has the same list: change it in a new revision of the schema."""
MAX_MAILED_PER_HOUR = 10
"""So many changes of a merchant are mailed within an hour of the clock. Nobody can flood the owners' mailboxes."""
_MAX_COUNTED = 1000

# Literals, because the planner uses a partial index only if it sees its condition.
_LITERALS = ", ".join(f"'{action}'" for action in sorted(SECURITY_ACTIONS))
_IS_SECURITY_CHANGE = f"action in ({_LITERALS})"
_LIST = f"""
select id, at, application_id, actor, case when member_id is not null then address end, action, details
from audit_log
where merchant_id = %(merchant)s and {_IS_SECURITY_CHANGE}
  and id < coalesce(%(before)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by id desc limit %(limit)s"""
_BEGIN = "update members set changes_seen_at = mizan_now() where id = %s and changes_seen_at is null"
# What the member did from the address that they use now is not news to them. The same member from another address may
# be somebody who stole their session.
UNSEEN_SQL = f"""
with seen as (select changes_seen_at as at from members where id = %(member)s),
latest as (
    select at, member_id, address from audit_log
    where merchant_id = %(merchant)s and {_IS_SECURITY_CHANGE} and at > (select at from seen)
    order by at desc limit {_MAX_COUNTED})
select count(*), (select at from seen), (select max(at) from latest) from latest
where member_id is distinct from %(member)s or address is distinct from %(address)s"""
_MARK_SEEN = """
update members set changes_seen_at = greatest(changes_seen_at, least(%(until)s, mizan_now())) where id = %(member)s"""
_READ = """
select e.merchant_id, merchants.name, a.name,
       e.id, e.at, e.application_id, e.actor, e.address, e.action, e.details
from audit_log as e join merchants on merchants.id = e.merchant_id
left join applications as a on a.id = e.application_id
where e.id = any(%s) order by e.id"""
_COUNT_EARLIER = f"""
select count(*) from (
    select at from audit_log
    where merchant_id = %(merchant)s and {_IS_SECURITY_CHANGE} and member_id is not null
      and at >= date_trunc('hour', %(at)s::timestamptz) and (at, id) < (%(at)s, %(first)s)
    limit {MAX_MAILED_PER_HOUR}) as earlier"""
_OWNERS = """
select distinct email from members
where merchant_id = %(merchant)s and joined_at is not null
  and (role = 'owner' and removed_at is null or email = any(%(no_longer)s))
order by email"""


@dataclass(frozen=True, slots=True)
class UnseenChanges:
    count: int
    since: datetime
    until: datetime
    """When the latest of them was made."""


@dataclass(frozen=True, slots=True)
class ChangesToMail:
    merchant_name: str
    changes: Sequence[tuple[AuditEntry, str | None]]
    """The entries, each with the name of its application."""
    owners: Sequence[str]
    """Their email addresses, and those of owners whom these changes made something else."""
    is_last: bool
    """Whether no more changes are mailed within this hour."""


def list_security_changes(
    connection: Connection[Any], merchant_id: UUID, *, before: UUID | None, limit: int
) -> list[AuditEntry]:
    """Return the security changes of a merchant before `before`, newest first."""
    rows = connection.execute(_LIST, {"merchant": merchant_id, "before": before, "limit": limit})
    return [AuditEntry(*row) for row in rows]


def find_unseen_changes(
    cursor: Cursor[Any], merchant_id: UUID, member_id: UUID, address: str
) -> UnseenChanges | None:
    """Return the changes since this owner last marked them as seen, except their own from this address.

    The cursor is one that reads in index order.
    """
    values = {"merchant": merchant_id, "member": member_id, "address": address}
    row = cursor.execute(UNSEEN_SQL, values).fetchone()
    assert row is not None
    return UnseenChanges(*row) if row[0] else None


def begin_to_notice_changes(connection: Connection[Any], member_id: UUID) -> None:
    """Tell a member who signs in for the first time of changes from now on."""
    connection.execute(_BEGIN, (member_id,))


def mark_changes_seen(connection: Connection[Any], member_id: UUID, until: datetime) -> None:
    """Mark the changes up to `until` as seen, but never those of the future."""
    connection.execute(_MARK_SEEN, {"member": member_id, "until": until})


def read_changes_to_mail(cursor: Cursor[Any], entries: Sequence[UUID]) -> list[ChangesToMail]:
    """Return what to mail about these entries of one request, by merchant: no merchant learns of another's entries.

    There is nothing to mail about entries that were not committed, or if enough was mailed within this hour.
    """
    by_merchant: dict[tuple[UUID, str], list[tuple[AuditEntry, str | None]]] = defaultdict(list)
    for merchant_id, merchant_name, application, *entry in cursor.execute(_READ, (list(entries),)).fetchall():
        by_merchant[merchant_id, merchant_name].append((AuditEntry(*entry), application))
    found = (_changes_of(cursor, *merchant, changes) for merchant, changes in by_merchant.items())
    return [changes for changes in found if changes is not None]


def _changes_of(
    cursor: Cursor[Any],
    merchant_id: UUID,
    merchant_name: str,
    changes: Sequence[tuple[AuditEntry, str | None]],
) -> ChangesToMail | None:
    first = changes[0][0]
    values = {"merchant": merchant_id, "first": first.id, "at": first.at}
    (earlier,) = cursor.execute(_COUNT_EARLIER, values).fetchone() or (0,)
    if earlier >= MAX_MAILED_PER_HOUR:
        return None
    no_longer = [str(entry.details["email"]) for entry, _name in changes if _ends_ownership(entry)]
    owners = cursor.execute(_OWNERS, {"merchant": merchant_id, "no_longer": no_longer})
    is_last = earlier + len(changes) >= MAX_MAILED_PER_HOUR
    return ChangesToMail(merchant_name, changes, [email for (email,) in owners], is_last)


def _ends_ownership(entry: AuditEntry) -> bool:
    was = {Action.ROLE_CHANGED: "from", Action.MEMBER_REMOVED: "role"}.get(Action(entry.action))
    return was is not None and entry.details.get(was) == Role.OWNER

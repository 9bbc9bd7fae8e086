"""The audit log: who did what, when and from where. An entry is written in the transaction of its action and never
changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

AuditDetails = Mapping[str, str | int | list[str] | None]
"""What is needed to understand the action; never a secret."""


class Action(StrEnum):
    SIGNED_IN = "signed_in"
    SIGN_IN_FAILED = "sign_in_failed"
    """Kept in its own table (shared/domain/accounts/failed_sign_ins.py), and shown among the others."""
    SIGNED_OUT = "signed_out"
    SESSION_ENDED = "session_ended"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105  the name of an action
    MEMBER_CREATED = "member_created"
    MEMBER_INVITED = "member_invited"
    MEMBER_JOINED = "member_joined"
    MEMBER_REMOVED = "member_removed"
    MEMBER_SET_ASIDE = "member_set_aside"
    """By migration 0017: their password was not that of their email address's account. They must be invited again."""
    ROLE_CHANGED = "role_changed"
    APPLICATION_CREATED = "application_created"
    APPLICATION_RENAMED = "application_renamed"
    PUBLIC_NAMES_CHANGED = "public_names_changed"
    METHODS_CHANGED = "methods_changed"
    PROVIDER_SET = "provider_set"
    CREDENTIAL_ISSUED = "credential_issued"
    CREDENTIAL_REVOKED = "credential_revoked"
    WEBHOOK_URL_SET = "webhook_url_set"
    WEBHOOK_URL_REMOVED = "webhook_url_removed"
    WEBHOOK_SECRET_ROLLED = "webhook_secret_rolled"  # noqa: S105  the name of an action
    WEBHOOKS_PAUSED = "webhooks_paused"
    WEBHOOKS_RESUMED = "webhooks_resumed"
    TEST_DELIVERY_SENT = "test_delivery_sent"
    DELIVERY_RESENT = "delivery_resent"
    FAILED_DELIVERIES_RESENT = "failed_deliveries_resent"
    WAITING_DELIVERIES_RESENT = "waiting_deliveries_resent"
    RESEND_STOPPED = "resending_stopped"
    PAYMENTS_EXPORTED = "payments_exported"
    OPERATOR_CREATED = "operator_created"
    OPERATOR_REMOVED = "operator_removed"
    PROVIDER_ASKED = "provider_asked"
    ATTEMPT_DECIDED = "attempt_decided"
    DECISION_PROPOSED = "decision_proposed"
    DECISION_APPROVED = "decision_approved"
    DECISION_REJECTED = "decision_rejected"
    SECRETS_REENCRYPTED = "secrets_resealed"
    DUPLICATE_HANDLED = "duplicate_handled"
    DEAD_LETTER_REPLAYED = "letter_replayed"
    DEAD_LETTERS_REPLAYED = "letters_replayed"
    DEAD_LETTER_DISMISSED = "letter_dismissed"
    REPLAY_STOPPED = "replaying_stopped"


@dataclass(frozen=True, slots=True)
class Actor:
    name: str
    """An email address; of an operator "operator" and the email address, or "cli operator" and the system's account."""
    member_id: UUID | None = None
    address: str | None = None
    """Where the request came from; for the command line, the host and the container."""
    operator_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    id: UUID
    at: datetime
    application_id: UUID | None
    actor: str
    address: str | None
    action: str
    details: AuditDetails


_RECORD = """
insert into audit_log (merchant_id, application_id, member_id, operator_id, actor, address, action, details)
select coalesce(%(merchant)s, (select merchant_id from applications where id = %(application)s)),
       %(application)s, %(member)s, %(operator)s, %(actor)s, %(address)s, %(action)s, %(details)s
returning id"""
# Merchants do not see the address of an operator, nor the host of the command line.
_LIST = """
select id, at, application_id, actor, case when member_id is not null then address end, action, details
from audit_log
where merchant_id = %(merchant)s and id < coalesce(%(before)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by id desc limit %(limit)s"""
_LIST_OF_OPERATORS = """
select id, at, application_id, actor, address, action, details from audit_log
where member_id is null and id < coalesce(%(before)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by id desc limit %(limit)s"""


def add_audit_entry(
    connection: Connection[Any],
    actor: Actor,
    action: Action,
    *,
    merchant_id: UUID | None = None,
    application_id: UUID | None = None,
    details: AuditDetails | None = None,
) -> UUID:
    """Add an entry to the log of the merchant or of the application's merchant; without both, only operators see it.

    Return its id.
    """
    row = connection.execute(
        _RECORD,
        {
            "merchant": merchant_id,
            "application": application_id,
            "member": actor.member_id,
            "operator": actor.operator_id,
            "actor": actor.name,
            "address": actor.address,
            "action": action,
            "details": Jsonb(dict(details or {})),
        },
    ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


def list_entries(
    connection: Connection[Any], merchant_id: UUID, *, before: UUID | None, limit: int
) -> list[AuditEntry]:
    """Return the entries of a merchant before `before`, newest first."""
    rows = connection.execute(_LIST, {"merchant": merchant_id, "before": before, "limit": limit})
    return [AuditEntry(*row) for row in rows]


def list_operator_entries(
    connection: Connection[Any], *, before: UUID | None, limit: int
) -> list[AuditEntry]:
    """Return what operators did, at the monitor and on the command line, before `before`, newest first."""
    rows = connection.execute(_LIST_OF_OPERATORS, {"before": before, "limit": limit})
    return [AuditEntry(*row) for row in rows]

"""What each service's role may do with each table: the expected state, which privileges.py compares with a database.

The migrations grant it (revision 0022 and later ones; they are frozen, this is today's state). docs/security.md shows
it; `python -m shared.platform.database.granted` prints that table. Columns are named where a row mixes secrets and
plain data, and wherever rows are updated. Partitions have no rights of their own: rows are reached through their table.

To lock a row, a role needs the right to update one of its columns. Where a role only locks, the column is one that it
cannot misuse: an id that other rows refer to, or a time that nothing depends on.
"""

import re
import sys
from collections.abc import Mapping
from typing import NamedTuple

from shared.platform.database.roles import SERVICE_ROLES


class Right(NamedTuple):
    role: str
    table: str
    verb: str
    column: str


Verbs = Mapping[str, tuple[str, ...]]
"""Verb → columns; no columns: the whole row."""

_CHANGE_INTENT = "update (status, event_seq, updated_at)"
_ADD_EVENT = "insert (id, intent_uuid, seq, type, at, wrong_code)"
_SETTLE_ATTEMPT = (
    "update (state, reason, provider_reference, reference_from_operator, next_verify_at, updated_at"
)
_ADD_MESSAGE = "insert (topic, key, payload, trace)"
_ADD_AUDIT = "insert (merchant_id, application_id, member_id, actor, address, action, details, operator_id)"
_THROTTLE = "select, insert, update (failures, last_failure_at, expires_at), delete"
_REQUEST_RESEND = "select, insert (id, delivery_id)"

_GRANTS: Mapping[str, Mapping[str, str]] = {
    "alembic_version": dict.fromkeys((role.name for role in SERVICE_ROLES), "select"),
    "application_methods": {
        "mizan_checkout": "select",
        "mizan_dashboard": "select, insert, delete",
        "mizan_cli": "select, insert",
    },
    "applications": {
        "mizan_checkout": "select (id, merchant_id, public_name_ar, public_name_en, mode)",
        "mizan_webhooks": "select (id, webhook_url, webhook_secret_version, webhooks_paused_at)",
        "mizan_scheduler": "select (id, webhook_url, webhooks_paused_at)",
        "mizan_dashboard": "select, insert (id, merchant_id, name, webhook_url, mode), update (name, webhook_url, "
        "webhook_secret_version, public_name_ar, public_name_en)",
        "mizan_monitor": "select, update (webhooks_paused_at)",
        "mizan_cli": "select, insert (id, merchant_id, name, webhook_url, mode), update (webhook_url, "
        "webhook_secret_version, webhooks_paused_at)",
    },
    "audit_log": {
        "mizan_dashboard": f"select, {_ADD_AUDIT}",
        "mizan_monitor": f"select, {_ADD_AUDIT}",
        "mizan_cli": f"select, {_ADD_AUDIT}",
    },
    "bulk_resends": {
        "mizan_scheduler": "select, update (found, last_delivery_id, resent, next_batch_at, finished_at, outcome)",
        "mizan_dashboard": "select, insert, update (finished_at, outcome)",
        "mizan_monitor": "select, insert, update (finished_at, outcome)",
    },
    "checkout_limits": {
        "mizan_checkout": "select, insert, update (count, expires_at), delete",
        "mizan_scheduler": "select (ctid, expires_at), update (expires_at), delete",
    },
    "code_challenges": {
        "mizan_checkout": "select, insert (attempt_id, continuation, phone_hint, encrypted_phone, expires_at), "
        "update (continuation, encrypted_phone, codes_sent, codes_tried, sent_at, expires_at)",
        "mizan_scheduler": "select (ctid, expires_at), update (sent_at), delete",
        "mizan_cli": "select (attempt_id, encrypted_phone), update (encrypted_phone)",
    },
    "credentials": {
        "mizan_api": "select (id, application_id, kind, hash, last_used_at, revoked_at), update (last_used_at)",
        "mizan_dashboard": "select (id, application_id, kind, prefix, created_at, last_used_at, revoked_at, "
        "issued_by), insert (id, application_id, kind, prefix, hash, issued_by), update (revoked_at)",
        "mizan_cli": "select, insert (id, application_id, kind, prefix, hash, issued_by), update (revoked_at)",
    },
    "dead_letter_bulk_replays": {
        "mizan_scheduler": "select, update (processed_offset, replayed, refused, finished_at, outcome)",
        "mizan_monitor": "select, insert (id, actor, origin, final_offset, found), update (finished_at, outcome)",
        "mizan_cli": "select, insert (id, actor, origin, final_offset, found), update (processed_offset, replayed, "
        "refused, finished_at, outcome)",
    },
    "dead_letter_dismissals": {
        "mizan_scheduler": "select",
        "mizan_monitor": "select, insert (dead_letter_id, topic_id, record_offset, actor, reason)",
        "mizan_cli": "select, insert (dead_letter_id, topic_id, record_offset, actor, reason)",
    },
    "dead_letter_replays": {
        "mizan_scheduler": "select, insert (dead_letter_id, bulk_replay_id, actor)",
        "mizan_monitor": "select, insert (dead_letter_id, bulk_replay_id, actor)",
        "mizan_cli": "select, insert (dead_letter_id, bulk_replay_id, actor)",
    },
    "decision_proposals": {
        "mizan_monitor": "select, insert, update (ended_as, ended_by, ended_by_id, ended_at)",
        "mizan_cli": "select, insert, update (ended_as, ended_by, ended_by_id, ended_at)",
    },
    "failed_sign_ins": {
        "mizan_scheduler": "select (ctid, expires_at), update (at), delete",
        "mizan_dashboard": "select, insert, update (failures, expires_at)",
        "mizan_monitor": "select, insert, update (failures, expires_at)",
    },
    "intent_events": {
        "mizan_api": "select, insert (id, intent_uuid, seq, type, at)",
        "mizan_checkout": _ADD_EVENT,
        "mizan_webhooks": "select, update (taken_in_at)",
        "mizan_scheduler": f"select, {_ADD_EVENT}, update (republished_at)",
        "mizan_dashboard": "select",
        "mizan_monitor": f"select, {_ADD_EVENT}",
        "mizan_cli": f"select, {_ADD_EVENT}",
    },
    "login_throttles": {
        "mizan_scheduler": "select (ctid, expires_at), update (last_failure_at), delete",
        "mizan_dashboard": _THROTTLE,
        "mizan_monitor": _THROTTLE,
    },
    "members": {
        "mizan_dashboard": "select (id, merchant_id, email, role, created_at, joined_at, removed_at, user_id, "
        "changes_seen_at), insert (merchant_id, email, role), update (role, joined_at, removed_at, user_id, "
        "password_hash, changes_seen_at)",
        "mizan_cli": "select (id, merchant_id, email, role, created_at, joined_at, removed_at, user_id), "
        "insert (merchant_id, email, role), update (joined_at, removed_at, user_id, password_hash)",
    },
    "merchants": {
        "mizan_checkout": "select (id, name)",
        "mizan_dashboard": "select, update (id)",
        "mizan_monitor": "select",
        "mizan_cli": "select, insert (name), update (id)",
    },
    "one_time_codes": {
        "mizan_scheduler": "select (ctid, expires_at), update (created_at), delete",
        "mizan_dashboard": "select, insert (hash, purpose, subject, is_emailed, expires_at), "
        "update (used_at, is_emailed)",
    },
    "operator_inquiries": {
        "mizan_checkout": "select, update (answer, provider_reference, answered_at, state, provider_requests)",
        "mizan_monitor": "select, insert (attempt_id, asked_by, operator_id)",
        "mizan_cli": "select, insert (attempt_id, asked_by, operator_id)",
    },
    "operators": {
        "mizan_monitor": "select, update (password_hash)",
        "mizan_cli": "select, insert (email, password_hash), update (password_hash, removed_at)",
    },
    "outbox": {
        "mizan_api": f"select, {_ADD_MESSAGE}",
        "mizan_checkout": _ADD_MESSAGE,
        "mizan_scheduler": f"select, {_ADD_MESSAGE}, delete",
        "mizan_dashboard": _ADD_MESSAGE,
        "mizan_monitor": f"select (id, created_at), {_ADD_MESSAGE}",
        "mizan_cli": f"select, {_ADD_MESSAGE}",
    },
    "payment_attempts": {
        "mizan_checkout": "select, insert, update (state, reason, provider_reference, reference_from_operator, "
        "next_verify_at, provider_requests, sent_at, verifications, updated_at)",
        "mizan_scheduler": "select (ctid, id, intent_uuid, state, sent_at, next_verify_at, verifications), "
        "update (next_verify_at, verifications)",
        "mizan_dashboard": "select",
        "mizan_monitor": f"select, {_SETTLE_ATTEMPT}, handled_at, handled_note)",
        "mizan_cli": f"select, {_SETTLE_ATTEMPT}, handled_at, handled_note)",
    },
    "payment_intents": {
        "mizan_api": "select, insert (application_id, merchant_reference, reference, amount, currency, description, "
        "customer_external_id, return_url, metadata, expires_at, trace)",
        "mizan_checkout": f"select, {_CHANGE_INTENT}",
        "mizan_webhooks": "select (uuid, application_id)",
        "mizan_scheduler": "select (ctid, uuid, application_id, status, event_seq, expires_at, updated_at, trace), "
        f"{_CHANGE_INTENT}",
        "mizan_dashboard": "select",
        "mizan_monitor": f"select, {_CHANGE_INTENT}",
        "mizan_cli": f"select, {_CHANGE_INTENT}",
    },
    "provider_accounts": {
        "mizan_checkout": "select",
        "mizan_dashboard": "select (id, application_id, method, adapter, created_at, replaced_at), "
        "insert (id, application_id, method, adapter, encrypted_credentials), update (replaced_at)",
        "mizan_cli": "select, insert (id, application_id, method, adapter, encrypted_credentials), "
        "update (encrypted_credentials, replaced_at)",
    },
    "provider_pages": {
        "mizan_checkout": "select, insert (attempt_id, url)",
        "mizan_scheduler": "select (ctid, expires_at), update (created_at), delete",
    },
    "resend_requests": {
        "mizan_scheduler": "select, insert (id, delivery_id, unless_succeeded), update (created_at), delete",
        "mizan_webhooks": "select (id, unless_succeeded)",
        "mizan_dashboard": _REQUEST_RESEND,
        "mizan_monitor": _REQUEST_RESEND,
        "mizan_cli": _REQUEST_RESEND,
    },
    "sessions": {
        "mizan_scheduler": "select (ctid, expires_at), update (created_at), delete",
        "mizan_dashboard": "select, insert, update (last_seen_at, expires_at, password_at)",
        "mizan_monitor": "select, insert, update (last_seen_at, expires_at, password_at)",
        "mizan_cli": "select (hash, person_id, expires_at), update (expires_at)",
    },
    "users": {
        "mizan_dashboard": "select, insert (email, password_hash, email_verified_at), "
        "update (password_hash, email_verified_at)",
        "mizan_cli": "select, insert (email, password_hash, email_verified_at), "
        "update (password_hash, email_verified_at)",
    },
    "webhook_deliveries": {
        "mizan_webhooks": "select, insert (id, intent_uuid, application_id, event, url, secret_version, "
        "next_due_at), update (status, tries, step, next_due_at, updated_at, last_status_code, "
        "last_failure, set_aside_at)",
        "mizan_scheduler": "select, update (requeued_at, set_aside_at)",
        "mizan_dashboard": "select, insert (id, intent_uuid, application_id, event, url, secret_version, next_due_at, "
        "is_test)",
        "mizan_monitor": "select",
        "mizan_cli": "select",
    },
    "webhook_secrets": {
        "mizan_webhooks": "select",
        "mizan_dashboard": "select, insert (application_id, version, encrypted_secret)",
        "mizan_cli": "select, insert (application_id, version, encrypted_secret), update (encrypted_secret)",
    },
    "webhook_tries": {
        "mizan_webhooks": "select, insert",
        "mizan_scheduler": "select (delivery_id, number, resend_id, at)",
        "mizan_dashboard": "select",
        "mizan_monitor": "select",
        "mizan_cli": "select",
    },
}

_VERB = re.compile(r"(\w+)(?: \(([^)]*)\))?(?:, |$)")


def _parse(text: str) -> Verbs:
    return {verb: tuple(filter(None, columns.split(", "))) for verb, columns in _VERB.findall(text)}


GRANTS: Mapping[str, Mapping[str, Verbs]] = {
    table: {role: _parse(text) for role, text in roles.items()} for table, roles in _GRANTS.items()
}

_EVERYBODY = tuple(role.name for role in SERVICE_ROLES)
EXECUTABLE: Mapping[str, tuple[str, ...]] = {
    "mizan_now": _EVERYBODY,
    "uuid7_floor": _EVERYBODY,
    "intent_event_message": _EVERYBODY,
    "delivery_due_message": _EVERYBODY,
    "resend_requested_message": _EVERYBODY,
    "delivery_facet": _EVERYBODY,
    "find_demo_data": _EVERYBODY,
    "make_coming_month": ("mizan_scheduler",),
    "month_has_unfinished_work": ("mizan_scheduler",),
    "detach_old_month": ("mizan_scheduler",),
    "drop_old_month": ("mizan_scheduler",),
    "count_rows_without_month": ("mizan_scheduler",),
    "dashboard_session": ("mizan_dashboard",),
    "invitation_scope": ("mizan_dashboard",),
    "sees_delivery": ("mizan_dashboard",),
    "delivery_times": ("mizan_dashboard",),
}
"""Function → the roles that may call it. The others are triggers, or for the owner."""


def render_table() -> str:
    """Return the table of docs/security.md: a row for each table, a column for each role."""
    names = [role.name for role in SERVICE_ROLES]
    lines = [
        "| table | " + " | ".join(f"`{name}`" for name in names) + " |",
        "|---|" + "---|" * len(names),
    ]
    for table, roles in GRANTS.items():
        cells = [_render(roles.get(name, {})) for name in names]
        lines.append(f"| `{table}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _render(verbs: Verbs) -> str:
    return "; ".join(
        f"{verb} {', '.join(columns)}" if columns else f"**{verb}**" for verb, columns in verbs.items()
    )


if __name__ == "__main__":
    sys.stdout.write(f"{render_table()}\n")

"""The audit log page, and the labels of the actions and details in it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from flask import render_template, url_for
from flask_babel import lazy_gettext as _

from shared.console.payment_labels import (
    ATTEMPT_STATES,
    METHODS,
    MODES,
    PROVIDER_ANSWERS,
    PROVIDERS,
    STATUSES,
)
from shared.domain.accounts.failed_sign_ins import FailureReason
from shared.domain.accounts.roles import Role
from shared.domain.applications.credentials import CredentialKind
from shared.domain.audit_log import Action, AuditEntry

PAGE_SIZE = 50

ACTIONS = {
    Action.SIGNED_IN: _("Signed in"),
    Action.SIGN_IN_FAILED: _("Failed to sign in"),
    Action.SIGNED_OUT: _("Signed out"),
    Action.SESSION_ENDED: _("Ended sessions"),
    Action.PASSWORD_CHANGED: _("Changed their password"),
    Action.MEMBER_CREATED: _("Added a member"),
    Action.MEMBER_INVITED: _("Invited a member"),
    Action.MEMBER_JOINED: _("Joined the team"),
    Action.MEMBER_REMOVED: _("Removed a member"),
    Action.MEMBER_SET_ASIDE: _("Set a member aside, who must be invited again"),
    Action.ROLE_CHANGED: _("Changed a role"),
    Action.APPLICATION_CREATED: _("Created an application"),
    Action.APPLICATION_RENAMED: _("Renamed an application"),
    Action.PUBLIC_NAMES_CHANGED: _("Changed the name that customers see"),
    Action.METHODS_CHANGED: _("Changed payment methods"),
    Action.PROVIDER_SET: _("Set a provider account"),
    Action.CREDENTIAL_ISSUED: _("Issued a credential"),
    Action.CREDENTIAL_REVOKED: _("Revoked a credential"),
    Action.WEBHOOK_URL_SET: _("Set the webhook URL"),
    Action.WEBHOOK_URL_REMOVED: _("Removed the webhook URL"),
    Action.WEBHOOK_SECRET_ROLLED: _("Rolled the webhook secret"),
    Action.WEBHOOKS_PAUSED: _("Paused webhooks"),
    Action.WEBHOOKS_RESUMED: _("Resumed webhooks"),
    Action.TEST_DELIVERY_SENT: _("Sent a test delivery"),
    Action.DELIVERY_RESENT: _("Resent a delivery"),
    Action.FAILED_DELIVERIES_RESENT: _("Resent failed deliveries"),
    Action.WAITING_DELIVERIES_RESENT: _("Retried all waiting deliveries"),
    Action.RESEND_STOPPED: _("Stopped resending"),
    Action.PAYMENTS_EXPORTED: _("Exported payments"),
    Action.OPERATOR_CREATED: _("Added an operator"),
    Action.OPERATOR_REMOVED: _("Removed an operator"),
    Action.SECRETS_REENCRYPTED: _("Encrypted all secrets with the new key"),
    Action.PROVIDER_ASKED: _("Had a provider asked about a payment attempt"),
    Action.ATTEMPT_DECIDED: _("Decided a payment attempt"),
    Action.DECISION_PROPOSED: _("Proposed a decision about a payment attempt"),
    Action.DECISION_APPROVED: _("Approved a decision about a payment attempt"),
    Action.DECISION_REJECTED: _("Rejected a decision about a payment attempt"),
    Action.DUPLICATE_HANDLED: _("Marked a duplicate payment as handled"),
    Action.DEAD_LETTER_REPLAYED: _("Replayed a dead letter"),
    Action.DEAD_LETTERS_REPLAYED: _("Replayed dead letters"),
    Action.DEAD_LETTER_DISMISSED: _("Dismissed a dead letter"),
    Action.REPLAY_STOPPED: _("Stopped replaying"),
}

DETAILS = {
    "adapter": _("Provider"),
    "attempt": _("Payment attempt"),
    "before": _("Before"),
    "before_ar": _("Arabic name before"),
    "before_en": _("English name before"),
    "count": _("Number"),
    "delivery": _("Delivery"),
    "duplicates": _("Duplicate payments only"),
    "email": _("Email"),
    "from": _("From"),
    "kind": _("Kind"),
    "letter": _("Dead letter"),
    "method": _("Payment method"),
    "methods": _("Payment methods"),
    "mode": _("Mode"),
    "name": _("Name"),
    "name_ar": _("Arabic name"),
    "name_en": _("English name"),
    "note": _("Note"),
    "offset": _("Offset"),
    "outcome": _("Outcome"),
    "partition": _("Partition"),
    "payment": _("Payment"),
    "prefix": _("Begins with"),
    "proposed_by": _("Proposed by"),
    "provider_answer": _("Provider's answer"),
    "reason": _("Reason"),
    "reference": _("Reference"),
    "resend": _("Resend"),
    "resent": _("Resent"),
    "role": _("Role"),
    "run": _("Replay"),
    "search": _("Search"),
    "service": _("Service"),
    "sessions": _("Sessions"),
    "status": _("Status"),
    "to": _("To"),
    "topic": _("Topic"),
    "until": _("Until"),
    "url": _("URL"),
    "version": _("Version"),
}

FAILURE_REASONS = {
    FailureReason.WRONG_PASSWORD: _("Wrong password"),
    FailureReason.UNKNOWN_ACCOUNT: _("No such account"),
    FailureReason.REMOVED: _("The account was removed"),
    FailureReason.NOT_JOINED: _("The invitation was not accepted yet"),
    FailureReason.THROTTLED: _("Too many failures: the password was not checked"),
}

ROLES = {Role.OWNER: _("Owner"), Role.DEVELOPER: _("Developer"), Role.VIEWER: _("Viewer")}
CREDENTIAL_KINDS = {CredentialKind.API_KEY: _("API key"), CredentialKind.ACCESS_TOKEN: _("Access token")}

_VALUES: Mapping[str, Mapping[Any, object]] = {
    "adapter": PROVIDERS,
    "duplicates": {"yes": _("Yes")},
    "kind": CREDENTIAL_KINDS,
    "method": METHODS,
    "methods": METHODS,
    "mode": MODES,
    "outcome": ATTEMPT_STATES,
    "provider_answer": PROVIDER_ANSWERS,
    "role": ROLES,
    "service": {"dashboard": _("Dashboard"), "monitor": _("Monitor")},
    "status": STATUSES,
}
"""The labels of values that the code chose, by the name of the detail. Other values are what people wrote, or ids."""


def label_value(action: str, name: str, value: object) -> list[object]:
    """Return a detail's value for people: one label, or several if the detail is a list."""
    labels: Mapping[Any, object] = _VALUES.get(name, {})
    if name == "reason" and action == Action.SIGN_IN_FAILED:
        labels = FAILURE_REASONS
    elif name in ("from", "to") and action == Action.ROLE_CHANGED:
        labels = ROLES
    values = value if isinstance(value, list) else [value]
    return [labels.get(str(each), each) for each in values]


def render_audit_log(
    entries: Sequence[AuditEntry],
    applications: Mapping[UUID, str],
    *,
    is_first_page: bool,
    show: str | None = None,
    filtered_url: str | None = None,
) -> str:
    """Render one page, newest first. `entries` has more than PAGE_SIZE if there is another page, in any order.

    `applications` maps ids to names. `show` is the filter in the query of the page if it shows only security changes,
    and `filtered_url` the address of that page.
    """
    shown = sorted(entries, key=lambda entry: entry.id, reverse=True)[:PAGE_SIZE]
    has_older = len(entries) > PAGE_SIZE
    return render_template(
        "audit.html",
        entries=shown,
        actions=ACTIONS,
        detail_names=DETAILS,
        label_value=label_value,
        applications=applications,
        newest_url=None if is_first_page else url_for("people.audit", show=show),
        older_url=url_for("people.audit", before=shown[-1].id, show=show) if has_older else None,
        is_filtered=show is not None,
        filtered_url=filtered_url,
    )

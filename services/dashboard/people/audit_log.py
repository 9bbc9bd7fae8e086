"""The audit log of a merchant, newest first."""

from dataclasses import dataclass

from flask import render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext as _

from services.dashboard.access import signed_in
from services.dashboard.workshop import Workshop
from shared.applications.registry import list_applications_of
from shared.audit import Action, list_entries
from shared.uuid_text import uuid_in

_PAGE = 50

ACTIONS = {
    Action.SIGNED_IN: _("Signed in"),
    Action.SIGNED_OUT: _("Signed out"),
    Action.SESSION_ENDED: _("Ended sessions"),
    Action.PASSWORD_CHANGED: _("Changed their password"),
    Action.MEMBER_CREATED: _("Added a member"),
    Action.MEMBER_INVITED: _("Invited a member"),
    Action.MEMBER_JOINED: _("Joined the team"),
    Action.MEMBER_REMOVED: _("Removed a member"),
    Action.ROLE_CHANGED: _("Changed a role"),
    Action.APPLICATION_CREATED: _("Created an application"),
    Action.APPLICATION_RENAMED: _("Renamed an application"),
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
    Action.RESENDING_STOPPED: _("Stopped resending"),
    Action.PAYMENTS_EXPORTED: _("Exported payments"),
}

DETAILS = {
    "adapter": _("Provider"),
    "before": _("Before"),
    "count": _("Number"),
    "delivery": _("Delivery"),
    "email": _("Email"),
    "from": _("From"),
    "kind": _("Kind"),
    "method": _("Payment method"),
    "methods": _("Payment methods"),
    "name": _("Name"),
    "prefix": _("Begins with"),
    "resend": _("Resend"),
    "resent": _("Resent"),
    "role": _("Role"),
    "sessions": _("Sessions"),
    "status": _("Status"),
    "to": _("To"),
    "until": _("Until"),
    "url": _("URL"),
    "version": _("Version"),
}


@dataclass(frozen=True, slots=True)
class AuditPages:
    workshop: Workshop

    def audit(self) -> ResponseReturnValue:
        merchant = signed_in().member.merchant_id
        before = uuid_in(request.args.get("before", ""))
        with self.workshop.database.transaction() as connection:
            entries = list_entries(connection, merchant, before=before, most=_PAGE + 1)
            applications = list_applications_of(connection, merchant)
        shown = entries[:_PAGE]
        older = url_for("people.audit", before=shown[-1].id) if len(entries) > _PAGE else None
        return render_template(
            "people/audit.html",
            entries=shown,
            actions=ACTIONS,
            detail_names=DETAILS,
            applications={application.id: application.name for application in applications},
            newest_url=url_for("people.audit") if before else None,
            older_url=older,
        )

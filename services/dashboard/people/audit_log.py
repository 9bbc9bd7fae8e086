"""The audit log of a merchant, newest first."""

from dataclasses import dataclass

from flask import render_template, request, url_for
from flask.typing import ResponseReturnValue

from services.dashboard.access import signed_in
from services.dashboard.workshop import Workshop
from shared.console.audit_labels import ACTIONS, DETAILS
from shared.domain.applications.registry import list_applications_of
from shared.domain.audit_log import list_entries
from shared.platform.uuids import uuid_in

_PAGE = 50


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
            "audit.html",
            entries=shown,
            actions=ACTIONS,
            detail_names=DETAILS,
            applications={application.id: application.name for application in applications},
            newest_url=url_for("people.audit") if before else None,
            older_url=older,
        )

"""What operators did, here and at the command line, newest first."""

from dataclasses import dataclass

from flask import render_template, request, url_for
from flask.typing import ResponseReturnValue

from services.monitor.workshop import Workshop
from shared.console.audit_labels import ACTIONS, DETAILS
from shared.domain.applications.registry import names_of
from shared.domain.audit_log import list_operators_entries
from shared.platform.uuids import uuid_in

_PAGE = 50


@dataclass(frozen=True, slots=True)
class AuditPages:
    workshop: Workshop

    def audit(self) -> ResponseReturnValue:
        before = uuid_in(request.args.get("before", ""))
        with self.workshop.database.transaction() as connection:
            entries = list_operators_entries(connection, before=before, most=_PAGE + 1)
            shown = entries[:_PAGE]
            concerned = {entry.application_id for entry in shown if entry.application_id is not None}
            applications = names_of(connection, concerned)
        older = url_for("people.audit", before=shown[-1].id) if len(entries) > _PAGE else None
        return render_template(
            "audit.html",
            entries=shown,
            actions=ACTIONS,
            detail_names=DETAILS,
            applications=applications,
            newest_url=url_for("people.audit") if before else None,
            older_url=older,
        )

"""The audit log of a merchant, newest first."""

from dataclasses import dataclass

from flask import request
from flask.typing import ResponseReturnValue

from services.dashboard.access import current_session
from services.dashboard.dependencies import Dependencies
from shared.console.audit_log import PAGE_SIZE, render_audit_log
from shared.domain.applications.registry import list_merchant_applications
from shared.domain.audit_log import list_entries
from shared.platform.uuids import parse_uuid


@dataclass(frozen=True, slots=True)
class AuditPages:
    dependencies: Dependencies

    def audit(self) -> ResponseReturnValue:
        merchant = current_session().member.merchant_id
        before = parse_uuid(request.args.get("before", ""))
        with self.dependencies.database.transaction() as connection:
            entries = list_entries(connection, merchant, before=before, limit=PAGE_SIZE + 1)
            applications = list_merchant_applications(connection, merchant)
        names = {application.id: application.name for application in applications}
        return render_audit_log(entries, names, is_first_page=before is None)

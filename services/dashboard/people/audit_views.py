"""The audit log page, and the owners' mark that they have seen its security changes."""

from dataclasses import dataclass
from datetime import datetime

from flask import abort, redirect, request, url_for
from flask.typing import ResponseReturnValue

from services.dashboard.access import current_session
from services.dashboard.dependencies import Dependencies
from shared.console.audit_log import PAGE_SIZE, render_audit_log
from shared.console.requests import next_path
from shared.domain.accounts.failed_sign_ins import list_failed_sign_ins
from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import list_merchant_applications
from shared.domain.audit_log import list_entries
from shared.domain.security_changes import list_security_changes, mark_changes_seen
from shared.platform.uuids import parse_uuid

_SEE_OTHER = 303
_UNPROCESSABLE = 422
_SECURITY = "security"
"""Shows only security changes."""


@dataclass(frozen=True, slots=True)
class AuditPages:
    dependencies: Dependencies

    def audit(self) -> ResponseReturnValue:
        merchant = current_session().member.merchant_id
        before = parse_uuid(request.args.get("before", ""))
        only_security = request.args.get("show") == _SECURITY
        with self.dependencies.database.transaction() as connection:
            list_page = list_security_changes if only_security else list_entries
            entries = list_page(connection, merchant, before=before, limit=PAGE_SIZE + 1)
            if current_session().may(Permission.TEAM) and not only_security:
                entries += list_failed_sign_ins(connection, merchant, before=before, limit=PAGE_SIZE + 1)
            applications = list_merchant_applications(connection, merchant)
        names = {application.id: application.name for application in applications}
        return render_audit_log(
            entries,
            names,
            is_first_page=before is None,
            show=_SECURITY if only_security else None,
            filtered_url=url_for("people.audit", show=_SECURITY),
        )

    def changes_seen(self) -> ResponseReturnValue:
        """Mark the security changes that the notice counted as seen."""
        until = _parse_time(request.form.get("until", "")) or abort(_UNPROCESSABLE)
        with self.dependencies.database.transaction() as connection:
            mark_changes_seen(connection, current_session().member.id, until)
        return redirect(next_path() or url_for("applications.listing"), _SEE_OTHER)


def _parse_time(text: str) -> datetime | None:
    """Return a moment with its time zone, as `datetime.isoformat` writes it, or None."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else None

"""What the frame of every page shows: the merchant, the application, its sections, and the other applications."""

from collections.abc import Sequence

from flask import Flask, g, request

from services.dashboard.access import MemberSession
from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import Application, list_merchant_applications
from shared.domain.security_changes import UnseenChanges, find_unseen_changes
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.database.stable_plans import in_index_order

_MAX_OTHER_APPLICATIONS = 30
_SECTIONS = {
    "overview.show",
    "payments.listing",
    "deliveries.listing",
    "applications.webhook",
    "applications.credentials",
    "applications.settings",
}


def register_layout(app: Flask, database: Database) -> None:
    @app.context_processor
    def layout() -> dict[str, object]:
        session = g.get("signed_in")
        member = session.member if session else None
        application = (request.view_args or {}).get("application")
        here = application if isinstance(application, Application) else None

        def other_applications() -> Sequence[Application]:
            """A function, so that a part of a page, which has no navigation, costs no query."""
            return _list_others(database, here) if here else ()

        def unseen_changes() -> UnseenChanges | None:
            """Only for owners, and not on a page that answers a form: some of those are shown only once."""
            is_told = session is not None and session.may(Permission.TEAM) and request.method == "GET"
            return _find_unseen(database, session) if is_told else None

        return {
            "member": member,
            "unseen_changes": unseen_changes,
            "may": {permission.value: bool(session and session.may(permission)) for permission in Permission},
            "here": here,
            "header_title": member.merchant_name if member else "",
            "header_detail": here.name if here else "",
            "same_section": request.endpoint if request.endpoint in _SECTIONS else "overview.show",
            "other_applications": other_applications,
        }


def _find_unseen(database: Database, session: MemberSession) -> UnseenChanges | None:
    member = session.member
    try:
        with in_index_order(database) as cursor:
            return find_unseen_changes(cursor, member.merchant_id, member.id, session.address)
    except DatabaseUnavailableError:
        return None


def _list_others(database: Database, here: Application) -> Sequence[Application]:
    try:
        with database.cursor() as cursor:
            all_of_merchant = list_merchant_applications(cursor.connection, here.merchant_id)
    except DatabaseUnavailableError:
        return ()  # the error page is rendered with the same navigation
    return [each for each in all_of_merchant if each.id != here.id][:_MAX_OTHER_APPLICATIONS]

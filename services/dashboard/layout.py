"""What the frame of every page shows: the merchant, the application, its sections, and the other applications."""

from collections.abc import Sequence

from flask import Flask, g, request

from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import Application, list_merchant_applications
from shared.platform.database.pool import Database, DatabaseUnavailableError

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

        return {
            "member": member,
            "may": {permission.value: bool(session and session.may(permission)) for permission in Permission},
            "here": here,
            "header_title": member.merchant_name if member else "",
            "header_detail": here.name if here else "",
            "same_section": request.endpoint if request.endpoint in _SECTIONS else "overview.show",
            "other_applications": other_applications,
        }


def _list_others(database: Database, here: Application) -> Sequence[Application]:
    try:
        with database.cursor() as cursor:
            all_of_merchant = list_merchant_applications(cursor.connection, here.merchant_id)
    except DatabaseUnavailableError:
        return ()  # the error page is rendered with the same navigation
    return [each for each in all_of_merchant if each.id != here.id][:_MAX_OTHER_APPLICATIONS]

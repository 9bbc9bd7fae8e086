"""What every page has around it: who is signed in, where one is, and where one can go."""

from collections.abc import Sequence

from flask import Flask, g, request

from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import Application, list_applications_of
from shared.platform.database.pool import Database, DatabaseUnavailableError

_MOST_OTHERS = 30
_SECTIONS = {
    "overview.show",
    "payments.listing",
    "deliveries.listing",
    "applications.webhook",
    "applications.credentials",
    "applications.settings",
}


def lay_out(app: Flask, database: Database) -> None:
    @app.context_processor
    def surroundings() -> dict[str, object]:
        who = g.get("signed_in")
        application = (request.view_args or {}).get("application")
        here = application if isinstance(application, Application) else None

        def other_applications() -> Sequence[Application]:
            """Asked for by whole pages only, so that a part of one costs no query."""
            return _others(database, here) if here else ()

        return {
            "signed_in": who is not None,
            "member": who.member if who else None,
            "may": {permission.value: bool(who and who.may(permission)) for permission in Permission},
            "here": here,
            "section": request.blueprint,
            "same_section": request.endpoint if request.endpoint in _SECTIONS else "overview.show",
            "other_applications": other_applications,
        }


def _others(database: Database, here: Application) -> Sequence[Application]:
    try:
        with database.cursor() as cursor:
            all_of_merchant = list_applications_of(cursor.connection, here.merchant_id)
    except DatabaseUnavailableError:
        return ()  # the page that says so has to be made, too
    return [each for each in all_of_merchant if each.id != here.id][:_MOST_OTHERS]

"""A merchant's applications: the list, and how another one is made."""

from dataclasses import dataclass

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import current_session, record_action
from services.dashboard.applications.forms import ApplicationForm
from services.dashboard.applications.refusals import TOO_OLD
from services.dashboard.applications.wishes import Wish, Wishes, WishTooOldError
from services.dashboard.dependencies import Dependencies
from shared.domain.applications.errors import ApplicationExistsError
from shared.domain.applications.registry import create_application, list_merchant_applications
from shared.domain.audit_log import Action, AuditDetails

_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class ApplicationPages:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            applications = list_merchant_applications(connection, current_session().member.merchant_id)
        return render_template("applications/listing.html", applications=applications)

    def new(self) -> ResponseReturnValue:
        return self._form(ApplicationForm())

    def create(self) -> ResponseReturnValue:
        merchant_id = current_session().member.merchant_id
        form = ApplicationForm.sent(allow_private=self.dependencies.settings.webhooks.allow_private)
        if form.errors:
            return self._form(form, request.form.get("wish")), _UNPROCESSABLE
        try:
            wished = Wishes(self.dependencies.box).read(
                request.form.get("wish", ""), Wish.APPLICATION, merchant_id
            )
        except WishTooOldError:
            flash(str(TOO_OLD), "bad")
            return self._form(form), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                created = create_application(
                    connection, self.dependencies.box, form.application(wished, merchant_id)
                )
                details: AuditDetails = {
                    "name": form.name,
                    "methods": sorted(form.methods),
                    "url": form.url or None,
                }
                record_action(
                    connection, Action.APPLICATION_CREATED, application_id=created.id, details=details
                )
        except ApplicationExistsError:
            flash(
                _(
                    "This application exists already: the form was sent twice. If you did not keep its credentials, "
                    "issue new ones here, and roll the webhook secret."
                ),
                "info",
            )
            return redirect(url_for("applications.credentials", application=wished), _SEE_OTHER)
        return render_template("applications/created.html", name=form.name, created=created)

    def _form(self, form: ApplicationForm, wish: str | None = None) -> str:
        if wish is None:
            with self.dependencies.database.cursor() as cursor:
                wishes = Wishes(self.dependencies.box)
                wish = wishes.new(cursor, Wish.APPLICATION, current_session().member.merchant_id)
        return render_template("applications/new.html", form=form, wish=wish)

"""An application's name, and how its customers can pay."""

from dataclasses import dataclass
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import record_action
from services.dashboard.applications.forms import methods_in_form, name_in_form
from services.dashboard.applications.offering import ways_to_pay
from services.dashboard.applications.payment_methods import set_methods
from services.dashboard.applications.refusals import words_for
from services.dashboard.dependencies import Dependencies
from shared.domain.applications.errors import InvalidNameError, NoMethodsError
from shared.domain.applications.registry import Application, rename_application
from shared.domain.audit_log import Action, AuditDetails

_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class SettingsPages:
    dependencies: Dependencies

    def settings(self, application: Application) -> ResponseReturnValue:
        return self._page(application)

    def rename(self, application: Application) -> ResponseReturnValue:
        try:
            name = name_in_form()
        except InvalidNameError as error:
            filled_in = request.form.get("name", "")
            page = self._page(application, name=filled_in, errors={"name": words_for(error)})
            return page, _UNPROCESSABLE
        with self.dependencies.database.transaction() as connection:
            before = rename_application(connection, application.id, name)
            if before is not None:
                details: AuditDetails = {"name": name, "before": before}
                record_action(
                    connection, Action.APPLICATION_RENAMED, application_id=application.id, details=details
                )
        flash(_("The name was saved."), "good")
        return redirect(url_for("applications.settings", application=application.id), _SEE_OTHER)

    def choose_methods(self, application: Application) -> ResponseReturnValue:
        try:
            methods = methods_in_form()
        except NoMethodsError as error:
            return self._page(application, errors={"methods": words_for(error)}), _UNPROCESSABLE
        with self.dependencies.database.transaction() as connection:
            before = set_methods(connection, application.id, methods)
            if before is not None:
                details: AuditDetails = {"methods": sorted(methods), "before": before}
                record_action(
                    connection, Action.METHODS_CHANGED, application_id=application.id, details=details
                )
        flash(_("The payment methods were saved."), "good")
        return redirect(url_for("applications.settings", application=application.id), _SEE_OTHER)

    def _page(self, application: Application, **more: Any) -> str:
        settings = self.dependencies.settings
        with self.dependencies.database.cursor() as cursor:
            ways = ways_to_pay(cursor, application, settings)
        values = {"name": application.name, "errors": {}, **more}
        return render_template(
            "applications/settings.html",
            application=application,
            ways=ways,
            has_sandbox=settings.sandbox is not None,
            **values,
        )

"""Through whom an application's customers pay by one method. What was filled in is never shown again."""

from dataclasses import dataclass
from typing import Any

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import record_action
from services.dashboard.applications.refusals import words_for
from services.dashboard.dependencies import Dependencies
from shared.console.payment_labels import METHODS
from shared.domain.applications.provider_accounts import (
    REQUIRED_CREDENTIALS,
    InvalidCredentialError,
    ProviderName,
    current_provider_accounts,
    set_provider_account,
)
from shared.domain.applications.registry import Application
from shared.domain.audit_log import Action
from shared.domain.payment_methods import PaymentMethod

_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class ProviderPages:
    dependencies: Dependencies

    def provider(self, application: Application, method: str) -> ResponseReturnValue:
        return self._page(application, _method(method))

    def set_provider(self, application: Application, method: str) -> ResponseReturnValue:
        wanted = _method(method)
        adapter = self._adapter(request.form.get("adapter", ""))
        # People copy a credential with what is around it.
        credentials = {name: request.form.get(name, "").strip() for name in REQUIRED_CREDENTIALS[adapter]}
        try:
            with self.dependencies.database.transaction() as connection:
                set_provider_account(
                    connection,
                    self.dependencies.box,
                    application.id,
                    wanted,
                    provider=adapter,
                    credentials=credentials,
                )
                details = {"method": wanted, "adapter": adapter}
                record_action(connection, Action.PROVIDER_SET, application_id=application.id, details=details)
        except InvalidCredentialError as error:
            page = self._page(application, wanted, errors={error.name: words_for(error)})
            return page, _UNPROCESSABLE
        flash(_("The account was saved. New payments go through it from now on."), "good")
        return redirect(url_for("applications.settings", application=application.id), _SEE_OTHER)

    def _adapter(self, text: str) -> ProviderName:
        if text not in self._usable():
            abort(_UNPROCESSABLE)
        return ProviderName(text)

    def _usable(self) -> list[ProviderName]:
        """The sandbox only where there is one: never in production."""
        has_sandbox = self.dependencies.settings.sandbox is not None
        return [adapter for adapter in ProviderName if has_sandbox or adapter is not ProviderName.SANDBOX]

    def _page(self, application: Application, method: PaymentMethod, **more: Any) -> str:
        with self.dependencies.database.cursor() as cursor:
            account = current_provider_accounts(cursor, application.id).get(method)
        values = {"errors": {}, **more}
        return render_template(
            "applications/provider.html",
            application=application,
            method=method,
            method_name=METHODS[method],
            account=account,
            has_sandbox=ProviderName.SANDBOX in self._usable(),
            **values,
        )


def _method(text: str) -> PaymentMethod:
    if text not in set(PaymentMethod):
        abort(404)
    return PaymentMethod(text)

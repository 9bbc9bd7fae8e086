"""Pages of a merchant's applications: the list, a new one, settings, and provider accounts; and all routes."""

from dataclasses import dataclass
from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import current_session, record_action
from services.dashboard.applications.credential_views import CredentialPages
from services.dashboard.applications.form_tokens import FormPurpose, FormTokenExpiredError, FormTokens
from services.dashboard.applications.forms import ApplicationForm, read_methods, read_name, read_public_names
from services.dashboard.applications.labels import FORM_EXPIRED, refusal_text, template_labels
from services.dashboard.applications.queries import list_method_availability, set_methods
from services.dashboard.applications.webhook_views import WebhookPages
from services.dashboard.dependencies import Dependencies
from shared.console.guard import add_route, add_sensitive_route
from shared.console.payment_labels import METHODS
from shared.domain.accounts.roles import Permission
from shared.domain.applications.errors import ApplicationExistsError, InvalidNameError, NoMethodsError
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.provider_accounts import (
    REQUIRED_CREDENTIALS,
    InvalidCredentialError,
    ProviderName,
    describe_provider_accounts,
    set_provider_account,
)
from shared.domain.applications.public_names import PublicNames, set_public_names
from shared.domain.applications.registry import (
    Application,
    create_application,
    list_merchant_applications,
    rename_application,
)
from shared.domain.audit_log import Action, AuditDetails
from shared.domain.payment_methods import PaymentMethod

_SEE_OTHER = 303
_UNPROCESSABLE = 422

_SEE_OTHER = 303
_HERE = "/applications/<application>"
_POST = ("POST",)
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class ApplicationPages:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            applications = list_merchant_applications(connection, current_session().member.merchant_id)
        return render_template("applications/listing.html", applications=applications)

    def new(self) -> ResponseReturnValue:
        return self._show_form(ApplicationForm())

    def create(self) -> ResponseReturnValue:
        member = current_session().member
        merchant_id = member.merchant_id
        form = ApplicationForm.read(allow_private=self.dependencies.settings.webhooks.allow_private)
        if form.errors:
            return self._show_form(form, request.form.get("form_token")), _UNPROCESSABLE
        try:
            application_id = FormTokens(self.dependencies.form_box).read(
                request.form.get("form_token", ""), FormPurpose.APPLICATION, merchant_id
            )
        except FormTokenExpiredError:
            flash(str(FORM_EXPIRED), "bad")
            return self._show_form(form), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                new = form.application(application_id, merchant_id, member.id)
                created = create_application(connection, self.dependencies.webhook_box, new)
                details: AuditDetails = {
                    "name": form.name,
                    "mode": form.mode,
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
            return redirect(url_for("applications.credentials", application=application_id), _SEE_OTHER)
        return render_template(
            "applications/created.html",
            name=form.name,
            created=created,
            api_base=self.dependencies.settings.public_urls.api_base,
        )

    def _show_form(self, form: ApplicationForm, form_token: str | None = None) -> str:
        if form_token is None:
            with self.dependencies.database.cursor() as cursor:
                form_tokens = FormTokens(self.dependencies.form_box)
                form_token = form_tokens.create(
                    cursor, FormPurpose.APPLICATION, current_session().member.merchant_id
                )
        return render_template("applications/new.html", form=form, form_token=form_token)


@dataclass(frozen=True, slots=True)
class SettingsPages:
    dependencies: Dependencies

    def settings(self, application: Application) -> ResponseReturnValue:
        return self._page(application)

    def rename(self, application: Application) -> ResponseReturnValue:
        try:
            name = read_name()
        except InvalidNameError as error:
            filled_in = request.form.get("name", "")
            page = self._page(application, name=filled_in, errors={"name": refusal_text(error)})
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

    def set_public_names(self, application: Application) -> ResponseReturnValue:
        names, errors = read_public_names()
        if errors:
            filled_in = PublicNames(*(request.form.get(f"public_name_{lang}", "") for lang in ("ar", "en")))
            return self._page(application, public_names=filled_in, errors=errors), _UNPROCESSABLE
        with self.dependencies.database.transaction() as connection:
            before = set_public_names(connection, application.id, names)
            if before is not None:
                details: AuditDetails = {
                    "name_ar": names.ar,
                    "before_ar": before.ar,
                    "name_en": names.en,
                    "before_en": before.en,
                }
                record_action(
                    connection, Action.PUBLIC_NAMES_CHANGED, application_id=application.id, details=details
                )
        flash(_("The name that customers see was saved."), "good")
        return redirect(url_for("applications.settings", application=application.id), _SEE_OTHER)

    def choose_methods(self, application: Application) -> ResponseReturnValue:
        try:
            methods = read_methods()
        except NoMethodsError as error:
            # None was ticked, and the form is shown as it was sent.
            page = self._page(application, chosen=(), errors={"methods": refusal_text(error)})
            return page, _UNPROCESSABLE
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
        with self.dependencies.database.cursor() as cursor:
            methods = list_method_availability(cursor, application, self.dependencies.settings)
        shown = PublicNames(application.public_name_ar, application.public_name_en)
        values = {
            "name": application.name,
            "public_names": shown,
            "chosen": application.methods,
            "errors": {},
            **more,
        }
        return render_template(
            "applications/settings.html", application=application, methods=methods, **values
        )


@dataclass(frozen=True, slots=True)
class ProviderPages:
    """The provider account of one payment method of a live application.

    Credentials that were entered are never shown again.
    """

    dependencies: Dependencies

    def provider(self, application: Application, method: str) -> ResponseReturnValue:
        _require_live(application)
        return self._page(application, _parse_method(method))

    def set_provider(self, application: Application, method: str) -> ResponseReturnValue:
        _require_live(application)
        wanted = _parse_method(method)
        adapter = _parse_provider(request.form.get("adapter", ""))
        # Pasted credentials often have spaces around them.
        credentials = {name: request.form.get(name, "").strip() for name in REQUIRED_CREDENTIALS[adapter]}
        try:
            with self.dependencies.database.transaction() as connection:
                set_provider_account(
                    connection,
                    self.dependencies.provider_box,
                    application.id,
                    wanted,
                    provider=adapter,
                    credentials=credentials,
                )
                details = {"method": wanted, "adapter": adapter}
                record_action(connection, Action.PROVIDER_SET, application_id=application.id, details=details)
        except InvalidCredentialError as error:
            page = self._page(application, wanted, errors={error.name: refusal_text(error)})
            return page, _UNPROCESSABLE
        flash(_("The account was saved. New payments go through it from now on."), "good")
        return redirect(url_for("applications.settings", application=application.id), _SEE_OTHER)

    def _page(self, application: Application, method: PaymentMethod, **more: Any) -> str:
        with self.dependencies.database.cursor() as cursor:
            account = describe_provider_accounts(cursor, application.id).get(method)
        values = {"errors": {}, **more}
        return render_template(
            "applications/provider.html",
            application=application,
            method=method,
            method_name=METHODS[method],
            account=account,
            **values,
        )


def _require_live(application: Application) -> None:
    if application.mode is not ApplicationMode.LIVE:
        abort(404)


def _parse_provider(text: str) -> ProviderName:
    if text not in REQUIRED_CREDENTIALS:
        abort(_UNPROCESSABLE)
    return ProviderName(text)


def _parse_method(text: str) -> PaymentMethod:
    if text not in set(PaymentMethod):
        abort(404)
    return PaymentMethod(text)


def applications_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("applications", __name__)
    blueprint.context_processor(template_labels)
    pages = ApplicationPages(dependencies)
    add_route(blueprint, "/", pages.listing, Permission.READ)
    add_route(blueprint, "/applications/new", pages.new, Permission.APPLICATIONS)
    add_sensitive_route(blueprint, "/applications/new", pages.create, Permission.APPLICATIONS)
    settings = SettingsPages(dependencies)
    add_route(blueprint, f"{_HERE}/settings", settings.settings, Permission.READ)
    add_route(blueprint, f"{_HERE}/settings/name", settings.rename, Permission.APPLICATIONS, _POST)
    names_rule = f"{_HERE}/settings/public-names"
    add_route(blueprint, names_rule, settings.set_public_names, Permission.APPLICATIONS, _POST)
    add_route(blueprint, f"{_HERE}/settings/methods", settings.choose_methods, Permission.APPLICATIONS, _POST)
    provider, provider_rule = ProviderPages(dependencies), f"{_HERE}/settings/providers/<method>"
    add_route(blueprint, provider_rule, provider.provider, Permission.APPLICATIONS)
    add_sensitive_route(blueprint, provider_rule, provider.set_provider, Permission.APPLICATIONS)
    credentials, credentials_rule = CredentialPages(dependencies), f"{_HERE}/credentials"
    revoke_rule = f"{credentials_rule}/<uuid:credential>/revoke"
    add_route(blueprint, credentials_rule, credentials.credentials, Permission.READ)
    add_sensitive_route(blueprint, f"{credentials_rule}/<kind>", credentials.issue, Permission.CREDENTIALS)
    add_sensitive_route(blueprint, revoke_rule, credentials.revoke, Permission.CREDENTIALS)
    webhook = WebhookPages(dependencies)
    add_route(blueprint, f"{_HERE}/webhook", webhook.webhook, Permission.READ)
    add_sensitive_route(blueprint, f"{_HERE}/webhook/url", webhook.set_url, Permission.WEBHOOK)
    add_sensitive_route(blueprint, f"{_HERE}/webhook/url/remove", webhook.remove_url, Permission.WEBHOOK)
    add_sensitive_route(blueprint, f"{_HERE}/webhook/secret", webhook.roll_secret, Permission.WEBHOOK)
    add_route(blueprint, f"{_HERE}/webhook/test", webhook.send_test, Permission.WEBHOOK, _POST)
    return blueprint

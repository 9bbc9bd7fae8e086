"""Reads and validates the forms of an application."""

from dataclasses import dataclass, field
from uuid import UUID

from flask import request

from services.dashboard.applications.labels import refusal_text
from shared.domain.applications.errors import NoMethodsError
from shared.domain.applications.merchants import check_name
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.public_names import PublicNames, check_public_name
from shared.domain.applications.registry import NewApplication
from shared.domain.payment_methods import PaymentMethod
from shared.platform.errors import RefusedError
from shared.platform.outbound_url import WebhookUrl, WebhookUrlError, check_webhook_url
from shared.platform.web.languages import LANGUAGES


def read_name() -> str:
    return check_name(request.form.get("name", ""), of="application")


def read_public_names() -> tuple[PublicNames, dict[str, str]]:
    """Return the names that were entered, and the error of each field that is invalid."""
    names: dict[str, str | None] = {}
    errors: dict[str, str] = {}
    for lang in LANGUAGES:
        try:
            names[lang] = check_public_name(request.form.get(f"public_name_{lang}", ""))
        except RefusedError as error:
            errors[f"public_name_{lang}"] = refusal_text(error)
    return PublicNames(**names), errors


def read_methods() -> frozenset[PaymentMethod]:
    chosen = set(request.form.getlist("methods"))
    methods = frozenset(method for method in PaymentMethod if method.value in chosen)
    if not methods:
        raise NoMethodsError
    return methods


def read_mode() -> ApplicationMode:
    """Return the mode that was chosen. Anything but live is a test application."""
    is_live = request.form.get("mode") == ApplicationMode.LIVE
    return ApplicationMode.LIVE if is_live else ApplicationMode.TEST


def read_url(*, allow_private: bool) -> WebhookUrl:
    return check_webhook_url(request.form.get("url", "").strip(), allow_private=allow_private)


@dataclass(slots=True)
class ApplicationForm:
    """The form of a new application. It keeps what was entered while there are errors."""

    name: str = ""
    url: str = ""
    methods: frozenset[PaymentMethod] = frozenset(PaymentMethod)
    mode: ApplicationMode = ApplicationMode.TEST
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, *, allow_private: bool) -> "ApplicationForm":
        form = cls(
            request.form.get("name", ""), request.form.get("url", "").strip(), frozenset(), read_mode()
        )
        try:
            form.name = read_name()
        except RefusedError as error:
            form.errors["name"] = refusal_text(error)
        try:
            form.methods = read_methods()
        except RefusedError as error:
            form.errors["methods"] = refusal_text(error)
        try:
            if form.url:
                read_url(allow_private=allow_private)
        except WebhookUrlError as error:
            form.errors["url"] = refusal_text(error)
        return form

    def application(self, application_id: UUID, merchant_id: UUID, created_by: UUID) -> NewApplication:
        """Return the application to create. Only allowed if there are no errors."""
        assert not self.errors
        url = WebhookUrl(self.url) if self.url else None
        return NewApplication(
            self.name, merchant_id, self.methods, url, application_id, created_by, self.mode
        )

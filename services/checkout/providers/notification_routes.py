"""Routes for providers: signed notifications, callbacks, and the return of customers from a provider's page."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl
from uuid import UUID

import structlog
from flask import Blueprint, abort, redirect, request
from flask.typing import ResponseReturnValue

from services.checkout.metrics import PROVIDER_NOTIFICATIONS, count_settled
from services.checkout.pages.language import page_url
from services.checkout.payments.settlement import (
    AttemptContext,
    SettlementSideEffects,
    find_attempt_context,
)
from services.checkout.providers import plutu_notifications, sandbox
from services.checkout.providers.interface import ProviderResponse, UntrustedNotificationError
from services.checkout.providers.registry import ProviderRegistry
from shared.domain.attempts.provider_exchange import AttemptOutcome, SettlementResult
from shared.domain.attempts.settlement import settle_notification
from shared.platform.database.pool import Database
from shared.platform.settings import SandboxSettings
from shared.platform.strict_json import InvalidJsonError, parse_json_object
from shared.platform.web.languages import DEFAULT, LANGUAGES
from shared.platform.web.request_context import join_trace

log = structlog.get_logger(__name__)

_SEE_OTHER = 303
_UNAUTHORISED = 401
_UNPROCESSABLE = 422
_PLUTU = "plutu"


class NotificationMismatchError(Exception):
    """The notification does not match the attempt. Nothing was changed."""


def require_match(matches: bool, provider: str, why: str) -> None:
    """Raise NotificationMismatchError with the text `why` unless `matches`, and count the refused notification."""
    if not matches:
        PROVIDER_NOTIFICATIONS.labels(provider, "refused").inc()
        raise NotificationMismatchError(why)


@dataclass(frozen=True, slots=True)
class NotificationHandler:
    database: Database
    side_effects: SettlementSideEffects

    def settle(self, context: AttemptContext, outcome: AttemptOutcome) -> SettlementResult:
        """Settle the attempt and return the result. A repeated notification changes nothing."""
        with self.database.transaction() as connection:
            settled = settle_notification(connection, context.attempt, outcome)
            self.side_effects.of(context).record_side_effects(
                connection, context.attempt, settled, ProviderResponse(outcome)
            )
        PROVIDER_NOTIFICATIONS.labels(context.provider, "accepted").inc()
        count_settled(settled, context.method, context.provider)
        log.info(
            "provider notification settled",
            attempt=str(context.attempt),
            provider=context.provider,
            answer=outcome.answer,
        )
        return settled


def provider_blueprint(
    notifications: NotificationHandler, providers: ProviderRegistry, sandbox_settings: SandboxSettings | None
) -> Blueprint:
    blueprint = Blueprint("providers", __name__, url_prefix="/providers")
    plutu = PlutuRoutes(notifications, providers)
    blueprint.add_url_rule(
        "/plutu/returns/<lang>/<uuid:attempt>", view_func=plutu.customer_returns, methods=["GET"]
    )
    blueprint.add_url_rule(
        "/plutu/callbacks/<uuid:account>", view_func=plutu.callback, methods=["GET", "POST"]
    )
    if sandbox_settings is not None:
        routes = SandboxRoutes(notifications, sandbox_settings)
        blueprint.add_url_rule("/sandbox/notifications", view_func=routes.notification, methods=["POST"])

    @blueprint.errorhandler(NotificationMismatchError)
    def refused(error: NotificationMismatchError) -> ResponseReturnValue:
        log.error("provider notification does not match the attempt", reason=str(error))
        return {"message": str(error)}, _UNPROCESSABLE

    return blueprint


@dataclass(frozen=True, slots=True)
class SandboxRoutes:
    notifications: NotificationHandler
    settings: SandboxSettings

    def notification(self) -> ResponseReturnValue:
        signature = request.headers.get("Sandbox-Signature", "")
        try:
            notification = sandbox.read_notification(request.get_data(), signature, self.settings.secret)
        except UntrustedNotificationError as error:
            log.warning("sandbox notification refused", reason=str(error))
            return {"message": str(error)}, _UNAUTHORISED
        context = _find_context(self.notifications, notification.attempt, sandbox.NAME)
        require_match(notification.intent == context.intent, sandbox.NAME, "the intent does not match")
        require_match(notification.amount == context.amount, sandbox.NAME, "the amount does not match")
        require_match(notification.currency == context.currency, sandbox.NAME, "the currency does not match")
        require_match(
            context.reference in (None, notification.charge), sandbox.NAME, "the charge does not match"
        )
        outcome = notification.outcome()
        if outcome is not None:
            self.notifications.settle(context, outcome)
        return {"status": "taken in"}


@dataclass(frozen=True, slots=True)
class PlutuRoutes:
    notifications: NotificationHandler
    providers: ProviderRegistry

    def customer_returns(self, lang: str, attempt: UUID) -> ResponseReturnValue:
        """Settle what Plutu reports and redirect the customer to the payment page, whatever it reports."""
        context = self._find_context(attempt)
        try:
            self._settle(context, _parse_parameters(request.query_string))
        except (UntrustedNotificationError, NotificationMismatchError) as error:
            log.warning("customer return refused", attempt=str(attempt), reason=str(error))
        language = lang if lang in LANGUAGES else DEFAULT
        return redirect(page_url("pages.show", language, intent=context.intent), _SEE_OTHER)

    def callback(self, account: UUID) -> ResponseReturnValue:
        """Settle a callback. `account` may be any account of the application, because Plutu may store only one URL."""
        parameters = _callback_parameters()
        named = plutu_notifications.attempt_in(dict(parameters).get("invoice_no", ""))
        context = self._find_context(named) if named is not None else abort(404)
        if not self._belongs_to_same_application(context, account):
            abort(404)
        try:
            self._settle(context, parameters)
        except UntrustedNotificationError as error:
            log.warning("callback refused", attempt=str(context.attempt), reason=str(error))
            return {"message": str(error)}, _UNAUTHORISED
        return {"status": "taken in"}

    def _find_context(self, attempt: UUID) -> AttemptContext:
        context = _find_context(self.notifications, attempt, _PLUTU)
        return context if context.account is not None else abort(404)

    def _belongs_to_same_application(self, context: AttemptContext, account: UUID) -> bool:
        assert context.account is not None
        with self.notifications.database.transaction() as connection:
            cursor = connection.cursor()
            applications = {
                self.providers.application_id_of(cursor, one) for one in (context.account, account)
            }
        return len(applications) == 1

    def _settle(self, context: AttemptContext, parameters: Sequence[tuple[str, str]]) -> None:
        assert context.account is not None
        with self.notifications.database.transaction() as connection:
            secrets = self.providers.plutu_secrets(connection.cursor(), context.account)
        notification = plutu_notifications.read_notification(parameters, secrets)
        require_match(notification.attempt == context.attempt, _PLUTU, "the attempt does not match")
        if notification.approved and notification.amount != context.amount:
            # The customer may have been charged, and only this log entry tells of it.
            log.error(
                "payment refused because its amount does not match",
                attempt=str(context.attempt),
                paid=notification.amount,
                expected=context.amount,
                transaction=notification.transaction_id,
            )
        matches = not notification.approved or notification.amount == context.amount
        require_match(matches, _PLUTU, "the amount does not match")
        self.notifications.settle(context, plutu_notifications.outcome_of(notification))


def _find_context(notifications: NotificationHandler, attempt: UUID, provider: str) -> AttemptContext:
    """Return the attempt, or abort with 404 if there is none of this provider."""
    with notifications.database.cursor() as cursor:
        context = find_attempt_context(cursor, attempt)
    if context is None or context.provider != provider:
        abort(404)
    join_trace(context.trace, {"mizan.intent": str(context.intent), "mizan.attempt": str(context.attempt)})
    return context


def _callback_parameters() -> list[tuple[str, str]]:
    """Return the parameters of a callback, sent in the query string, as a form or as JSON.

    Aborts with 422 if the JSON is invalid.
    """
    if request.query_string:
        return _parse_parameters(request.query_string)
    if request.is_json:
        try:
            body = parse_json_object(request.get_data())
        except InvalidJsonError as error:
            abort(_UNPROCESSABLE, str(error))
        return [(name, str(value)) for name, value in body.items()]
    if request.mimetype == "multipart/form-data":
        return list(request.form.items(multi=True))
    return _parse_parameters(request.get_data())


def _parse_parameters(encoded: bytes) -> list[tuple[str, str]]:
    """Return the parameters in the order received, because the signature covers the order."""
    return parse_qsl(encoded.decode("utf-8", "replace"), keep_blank_values=True)

"""Where providers call, and where they send the customer back: signed, checked, and without a session."""

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
from services.checkout.providers.interface import ProviderResponse
from services.checkout.providers.registry import ProviderRegistry
from shared.domain.attempts.provider_exchange import AttemptOutcome, SettlementResult
from shared.domain.attempts.settlement import settle_notification
from shared.platform.database.pool import Database
from shared.platform.settings import SandboxSettings
from shared.platform.web.languages import DEFAULT, LANGUAGES
from shared.platform.web.request_context import join_trace

log = structlog.get_logger(__name__)

_SEE_OTHER = 303
_UNAUTHORISED = 401
_UNPROCESSABLE = 422
_PLUTU = "plutu"


class NotificationMismatchError(Exception):
    """It does not fit what we know; nothing was changed."""


def require_match(fits: bool, provider: str, why: str) -> None:
    if not fits:
        PROVIDER_NOTIFICATIONS.labels(provider, "refused").inc()
        raise NotificationMismatchError(why)


@dataclass(frozen=True, slots=True)
class NotificationHandler:
    database: Database
    side_effects: SettlementSideEffects

    def settle(self, known: AttemptContext, outcome: AttemptOutcome) -> SettlementResult:
        """The same news again changes nothing."""
        with self.database.transaction() as connection:
            settled = settle_notification(connection, known.attempt, outcome)
            self.side_effects.record_side_effects(
                connection, known.attempt, settled, ProviderResponse(outcome)
            )
        PROVIDER_NOTIFICATIONS.labels(known.provider, "accepted").inc()
        count_settled(settled, known.method, known.provider)
        log.info(
            "provider notification settled",
            attempt=str(known.attempt),
            provider=known.provider,
            answer=outcome.answer,
        )
        return settled


def provider_blueprint(
    news: NotificationHandler, providers: ProviderRegistry, sandbox_settings: SandboxSettings | None
) -> Blueprint:
    blueprint = Blueprint("providers", __name__, url_prefix="/providers")
    plutu = PlutuRoutes(news, providers)
    blueprint.add_url_rule(
        "/plutu/returns/<lang>/<uuid:attempt>", view_func=plutu.customer_returns, methods=["GET"]
    )
    blueprint.add_url_rule(
        "/plutu/callbacks/<uuid:account>", view_func=plutu.callback, methods=["GET", "POST"]
    )
    if sandbox_settings is not None:
        routes = SandboxRoutes(news, sandbox_settings)
        blueprint.add_url_rule("/sandbox/notifications", view_func=routes.notification, methods=["POST"])

    @blueprint.errorhandler(NotificationMismatchError)
    def refused(error: NotificationMismatchError) -> ResponseReturnValue:
        log.error("news of a provider refused", reason=str(error))
        return {"message": str(error)}, _UNPROCESSABLE

    return blueprint


@dataclass(frozen=True, slots=True)
class SandboxRoutes:
    news: NotificationHandler
    settings: SandboxSettings

    def notification(self) -> ResponseReturnValue:
        signature = request.headers.get("Sandbox-Signature", "")
        try:
            told = sandbox.read_notification(request.get_data(), signature, self.settings.secret)
        except sandbox.UntrustedNotificationError as error:
            log.warning("notification of the sandbox refused", reason=str(error))
            return {"message": str(error)}, _UNAUTHORISED
        known = _known(self.news, told.attempt, sandbox.NAME)
        require_match(told.intent == known.intent, sandbox.NAME, "it is of another intent")
        require_match(told.amount == known.amount, sandbox.NAME, "the amount is another one")
        require_match(told.currency == known.currency, sandbox.NAME, "the currency is another one")
        require_match(known.reference in (None, told.charge), sandbox.NAME, "it is of another charge")
        outcome = told.outcome()
        if outcome is not None:
            self.news.settle(known, outcome)
        return {"status": "taken in"}


@dataclass(frozen=True, slots=True)
class PlutuRoutes:
    news: NotificationHandler
    providers: ProviderRegistry

    def customer_returns(self, lang: str, attempt: UUID) -> ResponseReturnValue:
        """Whatever it says, the customer ends on their page, which shows how things stand."""
        known = self._known(attempt)
        try:
            self._settle(known, _received(request.query_string))
        except (plutu_notifications.UntrustedNotificationError, NotificationMismatchError) as error:
            log.warning("a customer's return was not believed", attempt=str(attempt), reason=str(error))
        spoken = lang if lang in LANGUAGES else DEFAULT
        return redirect(page_url("pages.show", spoken, intent=known.intent), _SEE_OTHER)

    def callback(self, account: UUID) -> ResponseReturnValue:
        """At the address of any account of the attempt's application: Plutu may know of one only."""
        received = _received_by_callback()
        named = plutu_notifications.attempt_in(dict(received).get("invoice_no", ""))
        known = self._known(named) if named is not None else abort(404)
        if not self._is_of_same_application(known, account):
            abort(404)
        try:
            self._settle(known, received)
        except plutu_notifications.UntrustedNotificationError as error:
            log.warning("a callback was not believed", attempt=str(known.attempt), reason=str(error))
            return {"message": str(error)}, _UNAUTHORISED
        return {"status": "taken in"}

    def _known(self, attempt: UUID) -> AttemptContext:
        known = _known(self.news, attempt, _PLUTU)
        return known if known.account is not None else abort(404)

    def _is_of_same_application(self, known: AttemptContext, account: UUID) -> bool:
        assert known.account is not None
        with self.news.database.transaction() as connection:
            cursor = connection.cursor()
            applications = {self.providers.application_id_of(cursor, one) for one in (known.account, account)}
        return len(applications) == 1

    def _settle(self, known: AttemptContext, received: Sequence[tuple[str, str]]) -> None:
        assert known.account is not None
        with self.news.database.transaction() as connection:
            secrets = self.providers.plutu_secrets(connection.cursor(), known.account)
        returned = plutu_notifications.read_notification(received, secrets)
        require_match(returned.attempt == known.attempt, _PLUTU, "it is of another attempt")
        if returned.approved and returned.amount != known.amount:
            # Money may have moved, and nobody else knows of it.
            log.error(
                "a payment of another amount was refused",
                attempt=str(known.attempt),
                paid=returned.amount,
                wanted=known.amount,
                transaction=returned.transaction_id,
            )
        fits = not returned.approved or returned.amount == known.amount
        require_match(fits, _PLUTU, "the amount is another one")
        self.news.settle(known, plutu_notifications.outcome_of(returned))


def _known(news: NotificationHandler, attempt: UUID, provider: str) -> AttemptContext:
    """An attempt of this provider's; nobody else may speak of it."""
    with news.database.cursor() as cursor:
        known = find_attempt_context(cursor, attempt)
    if known is None or known.provider != provider:
        abort(404)
    join_trace(known.trace, {"mizan.intent": str(known.intent), "mizan.attempt": str(known.attempt)})
    return known


def _received_by_callback() -> list[tuple[str, str]]:
    """However it is sent: in the address, as a form, or as JSON."""
    if request.query_string:
        return _received(request.query_string)
    if request.is_json:
        body = request.get_json(silent=True)
        return [(str(name), str(value)) for name, value in body.items()] if isinstance(body, dict) else []
    if request.mimetype == "multipart/form-data":
        return list(request.form.items(multi=True))
    return _received(request.get_data())


def _received(encoded: bytes) -> list[tuple[str, str]]:
    """In the order received, which is part of what is signed."""
    return parse_qsl(encoded.decode("utf-8", "replace"), keep_blank_values=True)

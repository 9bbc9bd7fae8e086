"""Views of the payment page: one URL per intent, whatever its status, and the actions of its forms."""

from dataclasses import dataclass, replace
from uuid import UUID

from flask import Blueprint, abort, redirect, request
from flask.typing import ResponseReturnValue

from services.checkout.pages import rendering
from services.checkout.pages.entered_wallet import EnteredWallets
from services.checkout.pages.form_fields import (
    FieldError,
    InvalidFieldsError,
    parse_card,
    parse_code,
    parse_method,
    parse_wallet,
)
from services.checkout.pages.labels import CODE_SENT_AGAIN, error_message, failure_message, field_message
from services.checkout.pages.language import current_language, page_url
from services.checkout.pages.rendering import AvailableMethods
from services.checkout.pages.view_models import PageKind, PaymentForm, select_page
from services.checkout.payments.checkout_state import (
    CheckoutState,
    LastAttempt,
    find_intent_status,
    load_checkout_state,
)
from services.checkout.payments.limits import LimitExceededError, Refusal
from services.checkout.payments.one_time_codes import CodeRefusedError
from services.checkout.payments.payment_service import CodeNotSentError, PaymentService, can_resend
from services.checkout.providers.interface import Card, Wallet
from services.checkout.providers.registry import (
    ConfiguredProvider,
    ProviderNotConfiguredError,
    ProviderRegistry,
)
from shared.console.requests import client_address
from shared.domain.attempts.start import AttemptRefusedError
from shared.domain.attempts.states import AttemptState
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database
from shared.platform.uuids import parse_uuid
from shared.platform.web.request_context import join_trace

_SEE_OTHER = 303
_UNPROCESSABLE = 422
_TOO_MANY = 429
_BAD_GATEWAY = 502
_MAX_ECHOED_CHARACTERS = 40


def pages_blueprint(
    database: Database, providers: ProviderRegistry, payments: PaymentService, wallets: EnteredWallets
) -> Blueprint:
    blueprint = Blueprint("pages", __name__)
    pages = CheckoutViews(database, providers, payments, wallets)
    blueprint.add_url_rule("/pay/<intent>", view_func=pages.show, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>", view_func=pages.pay, methods=["POST"])
    blueprint.add_url_rule("/pay/<intent>/state", view_func=pages.state, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>/leave", view_func=pages.leave, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>/code", view_func=pages.confirm, methods=["POST"])
    blueprint.add_url_rule("/pay/<intent>/code/again", view_func=pages.resend_code, methods=["POST"])
    return blueprint


@dataclass(frozen=True, slots=True)
class CheckoutViews:
    database: Database
    providers: ProviderRegistry
    payments: PaymentService
    wallets: EnteredWallets

    def show(self, intent: str) -> ResponseReturnValue:
        checkout = self._load(intent)
        match _page_kind(checkout, wants_change="change" in request.args):
            case PageKind.PAID:
                self.wallets.forget(checkout.intent)
                return rendering.receipt_page(checkout)
            case PageKind.PROCESSING:
                return rendering.processing_page(checkout)
            case PageKind.EXPIRED:
                return rendering.expired_page(checkout)
            case PageKind.REDIRECT_OPEN:
                return rendering.redirect_page(checkout)
            case PageKind.CODE:
                notice = str(CODE_SENT_AGAIN) if rendering.pop_resent(checkout) else None
                return self._code_page(checkout, notice=notice)
            case PageKind.READY:
                wallet = self.wallets.find(checkout.intent)
                return rendering.ready_page(checkout, self._available_methods(checkout), wallet=wallet)

    def state(self, intent: str) -> ResponseReturnValue:
        """Return the status of the intent, for the script of the page that waits."""
        with self.database.cursor() as cursor:
            state = find_intent_status(cursor, _uuid(intent))
        return {"state": state} if state is not None else abort(404)

    def pay(self, intent: str) -> ResponseReturnValue:
        checkout = self._load(intent)
        if _page_kind(checkout, wants_change=True) is not PageKind.READY:
            return _redirect_to_page(checkout)
        available = self._available_methods(checkout)
        try:
            method = _chosen_method(available)
            details = _details(method, available[method], checkout)
        except InvalidFieldsError as invalid:
            form = _submitted_form(available)
            errors = {name: field_message(error, form.chosen) for name, error in invalid.errors.items()}
            return rendering.ready_page(checkout, available, replace(form, errors=errors)), _UNPROCESSABLE
        rendering.remember_paying(checkout)
        if isinstance(details, Wallet):
            self.wallets.remember(checkout.intent, details)
        try:
            settled = self.payments.pay(
                checkout,
                method,
                available[method],
                details,
                lang=current_language(),
                client=client_address(),
                leave_redirect="leave_redirect" in request.form,
            )
        except LimitExceededError as exceeded:
            again = replace(_submitted_form(available), failure=failure_message(exceeded.refusal))
            return rendering.ready_page(checkout, available, again), _TOO_MANY, _retry_after(exceeded)
        except AttemptRefusedError:
            return _redirect_to_page(checkout)  # the page shows why
        if settled.attempt is AttemptState.AWAITING_REDIRECT:
            return redirect(page_url("pages.leave", intent=checkout.intent), _SEE_OTHER)
        return _redirect_to_page(checkout)

    def leave(self, intent: str) -> ResponseReturnValue:
        """Render a page that leads to the provider's page: a form must not redirect to another site directly."""
        checkout = self._load(intent)
        is_open = _page_kind(checkout) is PageKind.REDIRECT_OPEN
        if not is_open or checkout.attempt is None or checkout.attempt.provider_url is None:
            return _redirect_to_page(checkout)
        return rendering.leaving_page(checkout, checkout.attempt.provider_url)

    def confirm(self, intent: str) -> ResponseReturnValue:
        checkout = self._load(intent)
        if not _belongs_to_open_challenge(checkout):
            return _redirect_to_page(checkout)
        attempt = _open_attempt(checkout)
        try:
            code = parse_code(request.form, attempt.method)
        except InvalidFieldsError as invalid:
            return self._code_page(checkout, error=error_message(invalid.errors["code"])), _UNPROCESSABLE
        rendering.remember_paying(checkout)
        try:
            self.payments.confirm(checkout, attempt, code, lang=current_language(), client=client_address())
        except CodeRefusedError as refused:
            return self._code_page(checkout, error=error_message(refused.reason)), _UNPROCESSABLE
        except LimitExceededError as exceeded:
            page = self._code_page(checkout, error=error_message(exceeded.refusal))
            return page, _TOO_MANY, _retry_after(exceeded)
        except AttemptRefusedError:
            pass  # the page shows why
        return _redirect_to_page(checkout)

    def resend_code(self, intent: str) -> ResponseReturnValue:
        checkout = self._load(intent)
        if not _belongs_to_open_challenge(checkout):
            return _redirect_to_page(checkout)
        try:
            settled = self.payments.resend_code(
                checkout, _open_attempt(checkout), lang=current_language(), client=client_address()
            )
            if settled.attempt is AttemptState.AWAITING_CODE:
                rendering.remember_resent(checkout)
        except LimitExceededError as exceeded:
            page = self._code_page(checkout, notice=error_message(exceeded.refusal))
            return page, _TOO_MANY, _retry_after(exceeded)
        except CodeNotSentError:
            return self._code_page(checkout, notice=error_message(Refusal.CODE_NOT_SENT)), _BAD_GATEWAY
        except AttemptRefusedError:
            pass  # the page shows why
        return _redirect_to_page(checkout)

    def _code_page(
        self, checkout: CheckoutState, *, error: str | None = None, notice: str | None = None
    ) -> str:
        attempt = _open_attempt(checkout)
        assert attempt.challenge is not None
        try:
            with self.database.cursor() as cursor:
                resendable = can_resend(self.providers.for_attempt(cursor, attempt.account), attempt)
        except ProviderNotConfiguredError:
            resendable = False
        return rendering.code_page(
            checkout, attempt, attempt.challenge, can_resend=resendable, error=error, notice=notice
        )

    def _load(self, intent: str) -> CheckoutState:
        with self.database.cursor() as cursor:
            checkout = load_checkout_state(cursor, _uuid(intent))
        if checkout is None:
            abort(404)
        join_trace(checkout.trace, {"mizan.intent": str(checkout.intent)})
        return checkout

    def _available_methods(self, checkout: CheckoutState) -> AvailableMethods:
        with self.database.cursor() as cursor:
            return self.providers.available_methods(
                cursor, checkout.application, checkout.mode, checkout.methods, checkout.amount
            )


def _retry_after(exceeded: LimitExceededError) -> dict[str, str]:
    return {"Retry-After": str(exceeded.retry_after_s)}


def _uuid(text: str) -> UUID:
    return parse_uuid(text) or abort(404)


def _page_kind(checkout: CheckoutState, *, wants_change: bool = False) -> PageKind:
    attempt = checkout.attempt
    return select_page(
        checkout.status,
        is_expired=checkout.is_expired,
        attempt=None if attempt is None else attempt.state,
        can_continue=attempt is not None and attempt.can_continue,
        wants_change=wants_change,
    )


def _redirect_to_page(checkout: CheckoutState) -> ResponseReturnValue:
    return redirect(page_url("pages.show", intent=checkout.intent), _SEE_OTHER)


def _belongs_to_open_challenge(checkout: CheckoutState) -> bool:
    """Return whether the form belongs to the open challenge, not to an older one in another tab."""
    is_open = _page_kind(checkout) is PageKind.CODE and checkout.attempt is not None
    return is_open and request.form.get("attempt") == str(checkout.attempt and checkout.attempt.id)


def _open_attempt(checkout: CheckoutState) -> LastAttempt:
    assert checkout.attempt is not None
    return checkout.attempt


def _chosen_method(available: AvailableMethods) -> PaymentMethod:
    method = parse_method(request.form)
    if method not in available:
        raise InvalidFieldsError({"method": FieldError.METHOD_MISSING})
    return method


def _details(
    method: PaymentMethod, account: ConfiguredProvider, checkout: CheckoutState
) -> Card | Wallet | None:
    today = checkout.now.date()
    if method is not PaymentMethod.CARD:
        return parse_wallet(request.form, method, today)
    initial_state = account.provider.initial_state(method)
    return None if initial_state is AttemptState.AWAITING_REDIRECT else parse_card(request.form, today)


def _submitted_form(available: AvailableMethods) -> PaymentForm:
    """Return what was entered, except the card, to show it again."""
    chosen = request.form.get("method")
    return PaymentForm(
        choices=(),
        chosen=next(
            (method for method in available if method == chosen), next(iter(available), PaymentMethod.CARD)
        ),
        phone=request.form.get("phone", "")[:_MAX_ECHOED_CHARACTERS],
        birth_year=request.form.get("birth_year", "")[:_MAX_ECHOED_CHARACTERS],
    )

"""The customers' routes: one address for each intent, whatever its state, and what the forms on it do."""

from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, abort, redirect, request
from flask.typing import ResponseReturnValue

from services.checkout.pages import rendering
from services.checkout.pages.form_fields import (
    FieldError,
    InvalidFieldsError,
    parse_card,
    parse_code,
    parse_method,
    parse_wallet,
)
from services.checkout.pages.labels import CODE_SENT_AGAIN, error_message
from services.checkout.pages.language import current_language, page_url
from services.checkout.pages.rendering import Offered
from services.checkout.pages.view_models import PageKind, PaymentForm, select_page
from services.checkout.payments.checkout_state import (
    CheckoutState,
    LastAttempt,
    find_intent_status,
    load_checkout_state,
)
from services.checkout.payments.limits import LimitExceededError, Refusal
from services.checkout.payments.one_time_codes import CodeChallenge, CodeRefusedError
from services.checkout.payments.payment_service import CodeNotSentError, PaymentService
from services.checkout.providers.interface import Card, Wallet
from services.checkout.providers.registry import ConfiguredProvider, ProviderRegistry
from shared.domain.attempts.start import AttemptRefusedError
from shared.domain.attempts.states import AttemptState
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database
from shared.platform.uuids import uuid_in
from shared.platform.web.request_context import join_trace

_SEE_OTHER = 303
_UNPROCESSABLE = 422
_TOO_MANY = 429
_BAD_GATEWAY = 502
_LONGEST_SHOWN_AGAIN = 40


def pages_blueprint(database: Database, accounts: ProviderRegistry, payments: PaymentService) -> Blueprint:
    blueprint = Blueprint("pages", __name__)
    pages = CheckoutViews(database, accounts, payments)
    blueprint.add_url_rule("/pay/<intent>", view_func=pages.show, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>", view_func=pages.pay, methods=["POST"])
    blueprint.add_url_rule("/pay/<intent>/state", view_func=pages.state, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>/leave", view_func=pages.leave, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>/code", view_func=pages.confirm, methods=["POST"])
    blueprint.add_url_rule("/pay/<intent>/code/again", view_func=pages.send_again, methods=["POST"])
    return blueprint


@dataclass(frozen=True, slots=True)
class CheckoutViews:
    database: Database
    accounts: ProviderRegistry
    payments: PaymentService

    def show(self, intent: str) -> ResponseReturnValue:
        visit = self._visit(intent)
        match _showing(visit, wants_change="change" in request.args):
            case PageKind.PAID:
                return rendering.receipt_page(visit)
            case PageKind.PROCESSING:
                return rendering.processing_page(visit)
            case PageKind.EXPIRED:
                return rendering.expired_page(visit)
            case PageKind.REDIRECT_OPEN:
                return rendering.redirect_page(visit)
            case PageKind.CODE:
                notice = str(CODE_SENT_AGAIN) if rendering.was_sent_again(visit) else None
                return rendering.code_page(visit, *_challenged(visit), notice=notice)
            case PageKind.READY:
                return rendering.ready_page(visit, self._offered(visit))

    def state(self, intent: str) -> ResponseReturnValue:
        """For the script on a page that waits."""
        with self.database.cursor() as cursor:
            state = find_intent_status(cursor, _uuid(intent))
        return {"state": state} if state is not None else abort(404)

    def pay(self, intent: str) -> ResponseReturnValue:
        visit = self._visit(intent)
        if _showing(visit, wants_change=True) is not PageKind.READY:
            return _to_page(visit)
        offered = self._offered(visit)
        try:
            method = _chosen(offered)
            details = _details(method, offered[method], visit)
        except InvalidFieldsError as invalid:
            errors = {name: error_message(trouble) for name, trouble in invalid.troubles.items()}
            return rendering.ready_page(visit, offered, _form_again(offered, errors=errors)), _UNPROCESSABLE
        rendering.remember_paying(visit)
        try:
            settled = self.payments.pay(
                visit,
                method,
                offered[method],
                details,
                lang=current_language(),
                leave_redirect="leave_redirect" in request.form,
            )
        except LimitExceededError as too_much:
            again = _form_again(offered, failure=error_message(too_much.refusal))
            return rendering.ready_page(visit, offered, again), _TOO_MANY
        except AttemptRefusedError:
            return _to_page(visit)  # which shows why
        if settled.attempt is AttemptState.AWAITING_REDIRECT:
            return redirect(page_url("pages.leave", intent=visit.intent), _SEE_OTHER)
        return _to_page(visit)

    def leave(self, intent: str) -> ResponseReturnValue:
        """A page in between: a form's answer must not redirect to another site, or browsers refuse it."""
        visit = self._visit(intent)
        is_open = _showing(visit) is PageKind.REDIRECT_OPEN
        if not is_open or visit.attempt is None or visit.attempt.provider_url is None:
            return _to_page(visit)
        return rendering.leaving_page(visit, visit.attempt.provider_url)

    def confirm(self, intent: str) -> ResponseReturnValue:
        visit = self._visit(intent)
        if not _is_about_open_code(visit):
            return _to_page(visit)
        attempt, challenge = _challenged(visit)
        try:
            code = parse_code(request.form, attempt.method)
        except InvalidFieldsError as invalid:
            error = error_message(invalid.troubles["code"])
            return rendering.code_page(visit, attempt, challenge, error=error), _UNPROCESSABLE
        rendering.remember_paying(visit)
        try:
            self.payments.confirm(visit, attempt, code, lang=current_language())
        except CodeRefusedError as refused:
            error = error_message(refused.reason)
            return rendering.code_page(visit, attempt, challenge, error=error), _UNPROCESSABLE
        except AttemptRefusedError:
            pass  # the page shows why
        return _to_page(visit)

    def send_again(self, intent: str) -> ResponseReturnValue:
        visit = self._visit(intent)
        if not _is_about_open_code(visit):
            return _to_page(visit)
        try:
            settled = self.payments.send_again(visit, _challenged(visit)[0], lang=current_language())
            if settled.attempt is AttemptState.AWAITING_CODE:
                rendering.remember_sent_again(visit)
        except LimitExceededError as too_much:
            return self._code_page_again(visit, too_much.refusal), _TOO_MANY
        except CodeNotSentError:
            return self._code_page_again(visit, Refusal.CODE_NOT_SENT), _BAD_GATEWAY
        except AttemptRefusedError:
            pass  # the page shows why
        return _to_page(visit)

    def _code_page_again(self, visit: CheckoutState, refusal: Refusal) -> str:
        return rendering.code_page(visit, *_challenged(visit), notice=error_message(refusal))

    def _visit(self, intent: str) -> CheckoutState:
        with self.database.cursor() as cursor:
            visit = load_checkout_state(cursor, _uuid(intent))
        if visit is None:
            abort(404)
        join_trace(visit.trace, {"mizan.intent": str(visit.intent)})
        return visit

    def _offered(self, visit: CheckoutState) -> Offered:
        with self.database.cursor() as cursor:
            return self.accounts.offered(cursor, visit.application, visit.methods, visit.amount)


def _uuid(text: str) -> UUID:
    return uuid_in(text) or abort(404)


def _showing(visit: CheckoutState, *, wants_change: bool = False) -> PageKind:
    attempt = visit.attempt
    return select_page(
        visit.status,
        is_over=visit.is_over,
        attempt=None if attempt is None else attempt.state,
        can_go_on=attempt is not None and attempt.can_go_on,
        wants_change=wants_change,
    )


def _to_page(visit: CheckoutState) -> ResponseReturnValue:
    return redirect(page_url("pages.show", intent=visit.intent), _SEE_OTHER)


def _is_about_open_code(visit: CheckoutState) -> bool:
    """Not what another tab has left behind."""
    is_open = _showing(visit) is PageKind.CODE and visit.attempt is not None
    return is_open and request.form.get("attempt") == str(visit.attempt and visit.attempt.id)


def _challenged(visit: CheckoutState) -> tuple[LastAttempt, CodeChallenge]:
    assert visit.attempt is not None
    assert visit.attempt.challenge is not None
    return visit.attempt, visit.attempt.challenge


def _chosen(offered: Offered) -> PaymentMethod:
    method = parse_method(request.form)
    if method not in offered:
        raise InvalidFieldsError({"method": FieldError.METHOD_MISSING})
    return method


def _details(
    method: PaymentMethod, account: ConfiguredProvider, visit: CheckoutState
) -> Card | Wallet | None:
    today = visit.now.date()
    if method is not PaymentMethod.CARD:
        return parse_wallet(request.form, method, today)
    begins = account.provider.beginning(method)
    return None if begins is AttemptState.AWAITING_REDIRECT else parse_card(request.form, today)


def _form_again(
    offered: Offered, errors: dict[str, str] | None = None, failure: str | None = None
) -> PaymentForm:
    """What was entered, but never anything of a card."""
    chosen = request.form.get("method")
    return PaymentForm(
        choices=(),
        chosen=next(
            (method for method in offered if method == chosen), next(iter(offered), PaymentMethod.CARD)
        ),
        errors=errors or {},
        phone=request.form.get("phone", "")[:_LONGEST_SHOWN_AGAIN],
        birth_year=request.form.get("birth_year", "")[:_LONGEST_SHOWN_AGAIN],
        failure=failure,
    )

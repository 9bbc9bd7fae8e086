"""The customers' routes: one address for each intent, whatever its state, and what the forms on it do."""

from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, abort, redirect, request
from flask.typing import ResponseReturnValue

from services.checkout import rendering
from services.checkout.accounts import Account, Accounts
from services.checkout.codes import Challenge, CodeRefusedError
from services.checkout.form_fields import (
    FieldTrouble,
    InvalidFieldsError,
    card_in,
    code_in,
    method_in,
    wallet_in,
)
from services.checkout.language import current_language, page_url
from services.checkout.limits import TooMuchError
from services.checkout.page import PaymentForm
from services.checkout.payments import CodeNotSentError, Payments
from services.checkout.providers.port import Card, Wallet
from services.checkout.rendering import Offered, sentence_for
from services.checkout.sentences import CODE_SENT_AGAIN, Refusal
from services.checkout.showing import Showing, what_to_show
from services.checkout.visit import LastAttempt, Visit, look, state_of
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


def pages_blueprint(database: Database, accounts: Accounts, payments: Payments) -> Blueprint:
    blueprint = Blueprint("pages", __name__)
    pages = Pages(database, accounts, payments)
    blueprint.add_url_rule("/pay/<intent>", view_func=pages.show, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>", view_func=pages.pay, methods=["POST"])
    blueprint.add_url_rule("/pay/<intent>/state", view_func=pages.state, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>/leave", view_func=pages.leave, methods=["GET"])
    blueprint.add_url_rule("/pay/<intent>/code", view_func=pages.confirm, methods=["POST"])
    blueprint.add_url_rule("/pay/<intent>/code/again", view_func=pages.send_again, methods=["POST"])
    return blueprint


@dataclass(frozen=True, slots=True)
class Pages:
    database: Database
    accounts: Accounts
    payments: Payments

    def show(self, intent: str) -> ResponseReturnValue:
        visit = self._visit(intent)
        match _showing(visit, wants_change="change" in request.args):
            case Showing.PAID:
                return rendering.receipt_page(visit)
            case Showing.PROCESSING:
                return rendering.processing_page(visit)
            case Showing.EXPIRED:
                return rendering.expired_page(visit)
            case Showing.REDIRECT_OPEN:
                return rendering.redirect_page(visit)
            case Showing.CODE:
                notice = str(CODE_SENT_AGAIN) if rendering.was_sent_again(visit) else None
                return rendering.code_page(visit, *_challenged(visit), notice=notice)
            case Showing.READY:
                return rendering.ready_page(visit, self._offered(visit))

    def state(self, intent: str) -> ResponseReturnValue:
        """For the script on a page that waits."""
        with self.database.cursor() as cursor:
            state = state_of(cursor, _uuid(intent))
        return {"state": state} if state is not None else abort(404)

    def pay(self, intent: str) -> ResponseReturnValue:
        visit = self._visit(intent)
        if _showing(visit, wants_change=True) is not Showing.READY:
            return _to_page(visit)
        offered = self._offered(visit)
        try:
            method = _chosen(offered)
            details = _details(method, offered[method], visit)
        except InvalidFieldsError as invalid:
            errors = {name: sentence_for(trouble) for name, trouble in invalid.troubles.items()}
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
        except TooMuchError as too_much:
            again = _form_again(offered, failure=sentence_for(too_much.refusal))
            return rendering.ready_page(visit, offered, again), _TOO_MANY
        except AttemptRefusedError:
            return _to_page(visit)  # which shows why
        if settled.attempt is AttemptState.AWAITING_REDIRECT:
            return redirect(page_url("pages.leave", intent=visit.intent), _SEE_OTHER)
        return _to_page(visit)

    def leave(self, intent: str) -> ResponseReturnValue:
        """A page in between: a form's answer must not redirect to another site, or browsers refuse it."""
        visit = self._visit(intent)
        is_open = _showing(visit) is Showing.REDIRECT_OPEN
        if not is_open or visit.attempt is None or visit.attempt.provider_url is None:
            return _to_page(visit)
        return rendering.leaving_page(visit, visit.attempt.provider_url)

    def confirm(self, intent: str) -> ResponseReturnValue:
        visit = self._visit(intent)
        if not _is_about_open_code(visit):
            return _to_page(visit)
        attempt, challenge = _challenged(visit)
        try:
            code = code_in(request.form, attempt.method)
        except InvalidFieldsError as invalid:
            error = sentence_for(invalid.troubles["code"])
            return rendering.code_page(visit, attempt, challenge, error=error), _UNPROCESSABLE
        rendering.remember_paying(visit)
        try:
            self.payments.confirm(visit, attempt, code, lang=current_language())
        except CodeRefusedError as refused:
            error = sentence_for(refused.reason)
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
        except TooMuchError as too_much:
            return self._code_page_again(visit, too_much.refusal), _TOO_MANY
        except CodeNotSentError:
            return self._code_page_again(visit, Refusal.CODE_NOT_SENT), _BAD_GATEWAY
        except AttemptRefusedError:
            pass  # the page shows why
        return _to_page(visit)

    def _code_page_again(self, visit: Visit, refusal: Refusal) -> str:
        return rendering.code_page(visit, *_challenged(visit), notice=sentence_for(refusal))

    def _visit(self, intent: str) -> Visit:
        with self.database.cursor() as cursor:
            visit = look(cursor, _uuid(intent))
        if visit is None:
            abort(404)
        join_trace(visit.trace, {"mizan.intent": str(visit.intent)})
        return visit

    def _offered(self, visit: Visit) -> Offered:
        with self.database.cursor() as cursor:
            return self.accounts.offered(cursor, visit.application, visit.methods, visit.amount)


def _uuid(text: str) -> UUID:
    return uuid_in(text) or abort(404)


def _showing(visit: Visit, *, wants_change: bool = False) -> Showing:
    attempt = visit.attempt
    return what_to_show(
        visit.status,
        is_over=visit.is_over,
        attempt=None if attempt is None else attempt.state,
        can_go_on=attempt is not None and attempt.can_go_on,
        wants_change=wants_change,
    )


def _to_page(visit: Visit) -> ResponseReturnValue:
    return redirect(page_url("pages.show", intent=visit.intent), _SEE_OTHER)


def _is_about_open_code(visit: Visit) -> bool:
    """Not what another tab has left behind."""
    is_open = _showing(visit) is Showing.CODE and visit.attempt is not None
    return is_open and request.form.get("attempt") == str(visit.attempt and visit.attempt.id)


def _challenged(visit: Visit) -> tuple[LastAttempt, Challenge]:
    assert visit.attempt is not None
    assert visit.attempt.challenge is not None
    return visit.attempt, visit.attempt.challenge


def _chosen(offered: Offered) -> PaymentMethod:
    method = method_in(request.form)
    if method not in offered:
        raise InvalidFieldsError({"method": FieldTrouble.METHOD_MISSING})
    return method


def _details(method: PaymentMethod, account: Account, visit: Visit) -> Card | Wallet | None:
    today = visit.now.date()
    if method is not PaymentMethod.CARD:
        return wallet_in(request.form, method, today)
    begins = account.provider.beginning(method)
    return None if begins is AttemptState.AWAITING_REDIRECT else card_in(request.form, today)


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

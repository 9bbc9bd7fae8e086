"""Turns how an intent stands into the page that its customer sees."""

from collections.abc import Mapping
from dataclasses import replace

from flask import render_template, session

from services.checkout.pages.form_fields import CODE_LENGTHS
from services.checkout.pages.labels import METHOD_LABELS, error_message
from services.checkout.pages.language import current_language, page_url
from services.checkout.pages.view_models import (
    CodeForm,
    ExpiredNotice,
    IntentSummary,
    MethodChoice,
    OpenRedirect,
    PaymentForm,
    Receipt,
)
from services.checkout.payments.checkout_state import CheckoutState, LastAttempt
from services.checkout.payments.one_time_codes import CodeChallenge
from services.checkout.providers.interface import FailureReason
from services.checkout.providers.registry import ConfiguredProvider
from shared.domain.attempts.states import AttemptState
from shared.domain.payment_methods import PaymentMethod
from shared.platform.web.languages import amount_text, moment_text

_PAYING = "paying"
"""In the browser's cookie: the intent that it has just paid, or tried to."""
_SENT_AGAIN = "sent_again"

Offered = Mapping[PaymentMethod, ConfiguredProvider]


def remember_paying(visit: CheckoutState) -> None:
    session[_PAYING] = str(visit.intent)


def ready_page(visit: CheckoutState, offered: Offered, form: PaymentForm | None = None) -> str:
    """`form` holds what a customer has entered, to be shown again with what is wrong with it."""
    page = _page(visit)
    if not offered:
        return render_template("no_method.html", page=page)
    made = form or PaymentForm((), _last_method(visit, offered), failure=_failure(visit.attempt))
    choices = [
        MethodChoice(method, str(METHOD_LABELS[method]), has_fields=_has_fields(method, account))
        for method, account in offered.items()
    ]
    leaves = visit.attempt is not None and visit.attempt.state is AttemptState.AWAITING_REDIRECT
    shown = replace(made, choices=choices, leaves_redirect=leaves)
    return render_template("ready.html", page=page, form=shown)


def code_page(
    visit: CheckoutState,
    attempt: LastAttempt,
    challenge: CodeChallenge,
    *,
    error: str | None = None,
    notice: str | None = None,
) -> str:
    can_send_again = challenge.can_send_again
    form = CodeForm(
        url=page_url("pages.confirm", intent=visit.intent),
        attempt=attempt.id,
        method_label=str(METHOD_LABELS[attempt.method]),
        length=CODE_LENGTHS[attempt.method],
        phone_hint=challenge.phone_hint,
        send_again_url=page_url("pages.send_again", intent=visit.intent) if can_send_again else None,
        send_again_in_s=challenge.send_again_in_s,
        change_url=page_url("pages.show", intent=visit.intent, change=1),
        tries_left=challenge.tries_left,
        error=error or (None if notice else _code_trouble(attempt, challenge)),
        notice=notice,
    )
    return render_template("code.html", page=_page(visit), code=form)


def redirect_page(visit: CheckoutState) -> str:
    redirect = OpenRedirect(
        provider_url=page_url("pages.leave", intent=visit.intent),
        change_url=page_url("pages.show", intent=visit.intent, change=1),
    )
    return render_template("redirect_open.html", page=_page(visit), redirect=redirect)


def leaving_page(visit: CheckoutState, provider_url: str) -> str:
    return render_template("leave.html", page=_page(visit), redirect_url=provider_url)


def processing_page(visit: CheckoutState) -> str:
    return render_template("processing.html", page=_page(visit))


def receipt_page(visit: CheckoutState) -> str:
    assert visit.attempt is not None
    receipt = Receipt(
        paid_at=moment_text(visit.attempt.updated_at, current_language()),
        method_label=str(METHOD_LABELS[visit.attempt.method]),
        goes_on=session.pop(_PAYING, None) == str(visit.intent),
    )
    return render_template("receipt.html", page=_page(visit), receipt=receipt)


def expired_page(visit: CheckoutState) -> str:
    attempt = visit.attempt
    expired = ExpiredNotice(
        may_be_paid=attempt is not None and attempt.state is AttemptState.AWAITING_REDIRECT
    )
    return render_template("expired.html", page=_page(visit), expired=expired)


def remember_sent_again(visit: CheckoutState) -> None:
    session[_SENT_AGAIN] = str(visit.intent)


def was_sent_again(visit: CheckoutState) -> bool:
    """Once: it is said on the page that follows."""
    return bool(session.pop(_SENT_AGAIN, None) == str(visit.intent))


def _page(visit: CheckoutState) -> IntentSummary:
    lang = current_language()
    return IntentSummary(
        merchant=visit.merchant,
        description=visit.description,
        amount=amount_text(visit.amount, visit.currency, lang),
        reference=visit.reference.upper(),
        return_url=visit.return_url,
        seconds_left=visit.seconds_left,
        url=page_url("pages.show", intent=visit.intent),
        state_url=page_url("pages.state", intent=visit.intent),
    )


def _has_fields(method: PaymentMethod, account: ConfiguredProvider) -> bool:
    return account.provider.beginning(method) is not AttemptState.AWAITING_REDIRECT


def _last_method(visit: CheckoutState, offered: Offered) -> PaymentMethod:
    if visit.attempt is not None and visit.attempt.method in offered:
        return visit.attempt.method
    return next(iter(offered))


def _failure(attempt: LastAttempt | None) -> str | None:
    if attempt is None or attempt.state is not AttemptState.DECLINED:
        return None
    return error_message(attempt.reason)


def _code_trouble(attempt: LastAttempt, challenge: CodeChallenge) -> str | None:
    if challenge.is_expired:
        return error_message(FailureReason.CODE_EXPIRED)
    return error_message(attempt.reason) if attempt.reason else None

"""Renders the pages of an intent."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from flask import render_template, session

from services.checkout.pages.form_fields import CODE_LENGTHS
from services.checkout.pages.labels import METHOD_LABELS, error_message, failure_message, prefix_message
from services.checkout.pages.language import current_language, other_language, page_url
from services.checkout.pages.payment_form import render_payment_form
from services.checkout.pages.view_models import (
    CodeForm,
    ExpiredNotice,
    IntentSummary,
    MethodChoice,
    OpenRedirect,
    PaymentForm,
    Receipt,
    description_start,
    format_clock,
    select_time_shown,
)
from services.checkout.payments.checkout_state import CheckoutState, LastAttempt
from services.checkout.payments.one_time_codes import CodeChallenge
from services.checkout.providers.interface import FailureReason, Wallet
from services.checkout.providers.registry import ConfiguredProvider
from shared.domain.attempts.states import AttemptState
from shared.domain.payment_methods import WALLET_PREFIXES, PaymentMethod
from shared.platform.web.languages import format_amount, format_time

_PAYING = "paying"
"""Session key: the intent that the browser has just paid or tried to pay."""
_CODE_RESENT = "sent_again"

AvailableMethods = Mapping[PaymentMethod, ConfiguredProvider]


def remember_paying(checkout: CheckoutState) -> None:
    session[_PAYING] = str(checkout.intent)


def ready_page(
    checkout: CheckoutState,
    available: AvailableMethods,
    form: PaymentForm | None = None,
    *,
    wallet: Wallet | None = None,
) -> str:
    """Render the payment form.

    `form` has what the customer entered and the errors, after an invalid submission. `wallet` is what they entered
    before, for example in an attempt that was declined.
    """
    page = _page(checkout)
    if not available:
        return render_template("no_method.html", page=page)
    entered = form or PaymentForm(
        (),
        _last_method(checkout, available),
        phone=wallet.phone if wallet else "",
        birth_year=str(wallet.birth_year or "") if wallet else "",
        failure=_failure(checkout.attempt),
    )
    lang = current_language()
    choices = tuple(
        _choice(lang, method, has_fields=_has_fields(method, account))
        for method, account in available.items()
    )
    leaves_redirect = (
        checkout.attempt is not None and checkout.attempt.state is AttemptState.AWAITING_REDIRECT
    )
    shown = replace(entered, choices=choices, leaves_redirect=leaves_redirect)
    return render_payment_form(page, shown, page_url("pages.show", other_language(), intent=checkout.intent))


def code_page(
    checkout: CheckoutState,
    attempt: LastAttempt,
    challenge: CodeChallenge,
    *,
    can_resend: bool,
    error: str | None = None,
    notice: str | None = None,
) -> str:
    form = CodeForm(
        url=page_url("pages.confirm", intent=checkout.intent),
        attempt=attempt.id,
        method_label=str(METHOD_LABELS[attempt.method]),
        length=CODE_LENGTHS[attempt.method],
        phone_hint=challenge.phone_hint,
        resend_url=page_url("pages.resend_code", intent=checkout.intent) if can_resend else None,
        resend_in_s=challenge.resend_in_s,
        resend_in=format_clock(challenge.resend_in_s),
        change_url=page_url("pages.show", intent=checkout.intent, change=1),
        is_card=attempt.method is PaymentMethod.CARD,
        tries_left=challenge.tries_left,
        error=error or (None if notice else _code_error(attempt, challenge)),
        notice=notice,
    )
    return render_template("code.html", page=_page(checkout), code=form)


def redirect_page(checkout: CheckoutState) -> str:
    redirect = OpenRedirect(
        provider_url=page_url("pages.leave", intent=checkout.intent),
        change_url=page_url("pages.show", intent=checkout.intent, change=1),
    )
    return render_template("redirect_open.html", page=_page(checkout), redirect=redirect)


def leaving_page(checkout: CheckoutState, provider_url: str) -> str:
    return render_template("leave.html", page=_page(checkout), redirect_url=provider_url)


def processing_page(checkout: CheckoutState) -> str:
    return render_template("processing.html", page=_page(checkout))


def receipt_page(checkout: CheckoutState) -> str:
    assert checkout.attempt is not None
    receipt = Receipt(
        paid_at=format_time(checkout.attempt.updated_at, current_language()),
        method_label=str(METHOD_LABELS[checkout.attempt.method]),
        redirects=session.pop(_PAYING, None) == str(checkout.intent),
    )
    return render_template("receipt.html", page=_page(checkout), receipt=receipt)


def expired_page(checkout: CheckoutState) -> str:
    attempt = checkout.attempt
    expired = ExpiredNotice(
        may_be_paid=attempt is not None and attempt.state is AttemptState.AWAITING_REDIRECT
    )
    return render_template("expired.html", page=_page(checkout), expired=expired)


def remember_resent(checkout: CheckoutState) -> None:
    session[_CODE_RESENT] = str(checkout.intent)


def pop_resent(checkout: CheckoutState) -> bool:
    """Return whether a code was just resent, and clear the mark, so that only the next page shows it."""
    return bool(session.pop(_CODE_RESENT, None) == str(checkout.intent))


def _page(checkout: CheckoutState) -> IntentSummary:
    lang = current_language()
    merchant = checkout.shown_name(lang)
    return IntentSummary(
        mode=checkout.mode,
        merchant=merchant,
        initial=merchant[:1].upper(),
        description=checkout.description,
        description_start=description_start(checkout.description),
        amount=format_amount(checkout.amount, checkout.currency, lang),
        reference=checkout.reference.upper(),
        return_url=checkout.return_url,
        seconds_left=checkout.seconds_left,
        time_left=format_clock(checkout.seconds_left),
        time_shown=select_time_shown(checkout.seconds_left),
        expires_at=format_time(checkout.expires_at, lang),
        url=page_url("pages.show", intent=checkout.intent),
        state_url=page_url("pages.state", intent=checkout.intent),
    )


@lru_cache
def _choice(lang: str, method: PaymentMethod, *, has_fields: bool) -> MethodChoice:  # noqa: ARG001  the language of the request
    is_wallet = method in WALLET_PREFIXES
    return MethodChoice(
        method,
        str(METHOD_LABELS[method]),
        has_fields=has_fields,
        prefixes=WALLET_PREFIXES[method] if is_wallet else (),
        prefix_error=prefix_message(method) if is_wallet else "",
    )


def _has_fields(method: PaymentMethod, account: ConfiguredProvider) -> bool:
    return account.provider.initial_state(method) is not AttemptState.AWAITING_REDIRECT


def _last_method(checkout: CheckoutState, available: AvailableMethods) -> PaymentMethod:
    if checkout.attempt is not None and checkout.attempt.method in available:
        return checkout.attempt.method
    return next(iter(available))


def _failure(attempt: LastAttempt | None) -> str | None:
    if attempt is None or attempt.state is not AttemptState.DECLINED:
        return None
    return failure_message(attempt.reason)


def _code_error(attempt: LastAttempt, challenge: CodeChallenge) -> str | None:
    if challenge.is_expired:
        return error_message(FailureReason.CODE_EXPIRED)
    if attempt.reason == FailureReason.PROVIDER_AWAY:
        return failure_message(attempt.reason)
    return error_message(attempt.reason) if attempt.reason else None

"""Texts of the checkout: methods, error messages, error pages. The catalogues have the Arabic; templates the rest."""

from collections.abc import Sequence

from babel.lists import format_list
from flask_babel import get_locale, gettext
from flask_babel import lazy_gettext as _

from services.checkout.pages.form_fields import FieldError
from services.checkout.payments.limits import Refusal
from services.checkout.providers.interface import FailureReason
from shared.domain.payment_methods import WALLET_PREFIXES, PaymentMethod

CODE_SENT_AGAIN = _("A new code was sent.")


FORM_EXPIRED = (
    _("This page was open for too long"),
    _("What you entered was not sent. Open the payment page again and allow cookies."),
)
UNKNOWN_LINK = (
    _("This link is not valid"),
    _("It may be incomplete. Open it again as you received it, or go back to the shop."),
)
OTHER_ERROR = (_("Something went wrong"), _("Open the payment page again."))
UNAVAILABLE = (
    _("This page is not available right now"),
    _("If you have just paid, do not pay again. Open this page again in a moment to see the result."),
)
"""Title and text of each error page."""

METHOD_LABELS = {
    PaymentMethod.CARD: _("Bank card"),
    PaymentMethod.SADAD: _("Sadad"),
    PaymentMethod.ADFALI: _("Adfali"),
}

ERROR_MESSAGES = {
    FailureReason.DECLINED: _("The payment was declined. Try again, or pay in another way."),
    FailureReason.INSUFFICIENT_FUNDS: _("There is not enough money in this account."),
    FailureReason.NOT_SUBSCRIBED: _("This phone number is not registered with the wallet."),
    FailureReason.WRONG_PHONE: _("The wallet does not know this phone number."),
    FailureReason.WRONG_PHONE_OR_BIRTH_YEAR: _(
        "The wallet does not know this phone number with this birth year."
    ),
    FailureReason.WRONG_CODE: _("This code is not right. Check the message and try again."),
    FailureReason.CODE_EXPIRED: _("This code has expired. Request a new one."),
    FailureReason.TOO_MANY_CODES: _("Too many wrong codes. Start again to receive a new code."),
    FailureReason.WAIT_BEFORE_NEXT_CODE: _(
        "A code was sent a moment ago. Wait a little before you request another one."
    ),
    FailureReason.AMOUNT_NOT_ALLOWED: _("This amount cannot be paid in this way. Choose another way to pay."),
    FailureReason.ACCOUNT_TROUBLE: _("This way to pay does not work at the moment. Choose another one."),
    FailureReason.LEFT_BY_CUSTOMER: _("The payment was canceled on the bank's page."),
    FailureReason.PROVIDER_AWAY: _("The payment provider is not responding. Try again in a moment."),
    Refusal.TOO_MANY_ATTEMPTS: _("There were too many attempts. Wait a while and try again."),
    Refusal.TOO_MANY_CODES_SENT: _("Too many codes were sent. Wait a while and try again."),
    Refusal.TOO_MANY_CODES_TRIED: _(
        "Too many wrong codes were entered for this phone number. Pay in another way, or try again tomorrow."
    ),
    Refusal.TOO_MANY_FAILURES: _(
        "There were too many failed attempts from your network. Wait a while and try again."
    ),
    Refusal.SEND_AGAIN_TOO_SOON: _(
        "The code was sent a moment ago. Wait a little before you request it again."
    ),
    Refusal.CODE_NOT_SENT: _("The code could not be sent. Try again in a moment."),
    FieldError.METHOD_MISSING: _("Choose how to pay."),
    FieldError.CARD_NUMBER_MISSING: _("Enter the number on your card."),
    FieldError.CARD_NUMBER_WRONG: _("This card number is not right. Check its digits."),
    FieldError.EXPIRY_MISSING: _("Enter the expiry date of your card: month and year."),
    FieldError.EXPIRY_WRONG: _("Enter the month and the year as on your card, for example 08/29."),
    FieldError.EXPIRY_PAST: _("This card has expired."),
    FieldError.SECURITY_CODE_WRONG: _("Enter the 3 or 4 digits of the security code."),
    FieldError.PHONE_MISSING: _("Enter the phone number of your wallet."),
    FieldError.PHONE_WRONG: _("This phone number is not right. Enter it as 0912345678."),
    FieldError.BIRTH_YEAR_WRONG: _("Enter your birth year in four digits."),
    FieldError.CODE_MISSING: _("Enter the code that you received."),
    FieldError.CODE_WRONG_LENGTH: _("The code has a different number of digits. Check the message."),
}

DEFAULT_ERROR_MESSAGE = ERROR_MESSAGES[FailureReason.DECLINED]
NOTHING_TAKEN = _("Nothing was taken.")
_UNCHARGED = {reason.value for reason in (*FailureReason, *Refusal)}


def error_message(reason: str | None) -> str:
    """Return the text for a reason, or that of a declined payment if the reason is unknown."""
    return str(
        next((text for known, text in ERROR_MESSAGES.items() if known == reason), DEFAULT_ERROR_MESSAGE)
    )


def failure_message(reason: str | None) -> str:
    """Return the text for a reason, and that nothing was taken if that is known.

    It is not known if an operator decided the attempt, or if the provider has no record of it.
    """
    text = error_message(reason)
    return f"{text} {NOTHING_TAKEN}" if reason in _UNCHARGED else text


def field_message(error: FieldError, method: PaymentMethod) -> str:
    """Return the text for an error in a field of this method."""
    return prefix_message(method) if error is FieldError.PHONE_PREFIX else error_message(error)


def prefix_message(wallet: PaymentMethod) -> str:
    """Return the text that says which phone numbers the wallet takes."""
    prefixes = _list_prefixes(WALLET_PREFIXES[wallet])
    name = METHOD_LABELS[wallet]
    return str(gettext("%(wallet)s takes %(prefixes)s numbers only.", wallet=name, prefixes=prefixes))


def _list_prefixes(prefixes: Sequence[str]) -> str:
    """Return "091 to 096" for three or more in a row, else "091 and 093"."""
    first, last = prefixes[0], prefixes[-1]
    if len(prefixes) > 2 and int(last) - int(first) == len(prefixes) - 1:
        return str(gettext("%(first)s to %(last)s", first=first, last=last))
    return format_list(prefixes, locale=get_locale())

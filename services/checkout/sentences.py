"""What the page says for each thing that can be wrong; the catalogues have the same in Arabic."""

from enum import StrEnum

from flask_babel import lazy_gettext as _

from services.checkout.form_fields import FieldTrouble
from services.checkout.providers.port import Reason
from shared.domain.payment_methods import PaymentMethod


class Refusal(StrEnum):
    """Why we ourselves go no further for now."""

    TOO_MANY_ATTEMPTS = "too_many_attempts"
    TOO_MANY_CODES_SENT = "too_many_codes_sent"
    SEND_AGAIN_TOO_SOON = "send_again_too_soon"
    CODE_NOT_SENT = "code_not_sent"


CODE_SENT_AGAIN = _("A new code was sent.")


METHODS = {
    PaymentMethod.CARD: _("Bank card"),
    PaymentMethod.SADAD: _("Sadad"),
    PaymentMethod.ADFALI: _("Adfali"),
}

SENTENCES = {
    Reason.DECLINED: _("The payment was declined. Try again, or pay in another way."),
    Reason.INSUFFICIENT_FUNDS: _("There is not enough money in this account. Nothing was taken."),
    Reason.NOT_SUBSCRIBED: _("This phone number is not registered with the wallet."),
    Reason.WRONG_PHONE: _("The wallet does not know this phone number."),
    Reason.WRONG_PHONE_OR_BIRTH_YEAR: _("The wallet does not know this phone number with this birth year."),
    Reason.WRONG_CODE: _("This code is not right. Check the message and try again."),
    Reason.CODE_EXPIRED: _("This code is no longer valid. Have a new one sent."),
    Reason.TOO_MANY_CODES: _("Too many wrong codes. Begin again to receive a new one."),
    Reason.WAIT_BEFORE_NEXT_CODE: _(
        "A code was sent a moment ago. Wait a little before asking for another one."
    ),
    Reason.AMOUNT_NOT_ALLOWED: _("This amount cannot be paid in this way. Choose another way to pay."),
    Reason.ACCOUNT_TROUBLE: _("This way to pay does not work at the moment. Choose another one."),
    Reason.LEFT_BY_CUSTOMER: _("The payment was canceled on the bank's page. Nothing was taken."),
    Reason.PROVIDER_AWAY: _(
        "The payment provider does not answer. Nothing was taken; try again in a moment."
    ),
    Refusal.TOO_MANY_ATTEMPTS: _("There were too many attempts. Wait a while and try again."),
    Refusal.TOO_MANY_CODES_SENT: _("Too many codes were sent. Wait a while and try again."),
    Refusal.SEND_AGAIN_TOO_SOON: _("The code was sent a moment ago. Wait a little before asking again."),
    Refusal.CODE_NOT_SENT: _("The code could not be sent. Try again in a moment."),
    FieldTrouble.METHOD_MISSING: _("Choose how to pay."),
    FieldTrouble.CARD_NUMBER_MISSING: _("Enter the number on your card."),
    FieldTrouble.CARD_NUMBER_WRONG: _("This card number is not right. Check its digits."),
    FieldTrouble.EXPIRY_MISSING: _("Enter the expiry date of your card: month and year."),
    FieldTrouble.EXPIRY_WRONG: _("Enter the month and the year as on your card, for example 08/29."),
    FieldTrouble.EXPIRY_PAST: _("This card has expired."),
    FieldTrouble.SECURITY_CODE_WRONG: _("Enter the 3 or 4 digits of the security code."),
    FieldTrouble.PHONE_MISSING: _("Enter the phone number of your wallet."),
    FieldTrouble.PHONE_WRONG: _("This phone number is not right. Enter it as 0912345678."),
    FieldTrouble.BIRTH_YEAR_WRONG: _("Enter your birth year in four digits."),
    FieldTrouble.CODE_MISSING: _("Enter the code that you received."),
    FieldTrouble.CODE_WRONG_LENGTH: _("The code has another number of digits. Check the message."),
}

DEFAULT_FAILURE = SENTENCES[Reason.DECLINED]

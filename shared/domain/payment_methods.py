"""Payment methods, the phone numbers that wallets take, and the check of card numbers. Pure."""

from enum import StrEnum

from shared.platform.card_numbers import LENGTHS


def is_card_number(digits: str) -> bool:
    return len(digits) in LENGTHS and digits.isascii() and digits.isdecimal() and _luhn_sum(digits) % 10 == 0


def _luhn_sum(digits: str) -> int:
    """Return the Luhn sum: every second digit from the right is doubled."""
    plain, doubled = digits[-1::-2], digits[-2::-2]
    return sum(map(int, plain)) + sum(sum(divmod(2 * int(digit), 10)) for digit in doubled)


class PaymentMethod(StrEnum):
    CARD = "card"
    SADAD = "sadad"
    ADFALI = "adfali"


WALLET_PREFIXES = {
    PaymentMethod.SADAD: ("091", "093"),
    PaymentMethod.ADFALI: ("091", "092", "093", "094", "095", "096"),
}
"""The first digits of the phone numbers that each wallet takes, in order."""

"""How a customer can pay: by bank card, or with one of the two Libyan mobile wallets."""

from enum import StrEnum


class PaymentMethod(StrEnum):
    CARD = "card"
    SADAD = "sadad"
    ADFALI = "adfali"

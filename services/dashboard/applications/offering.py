"""What an application's customers are offered, method by method: the checkout's rule, told to the merchant."""

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any

from psycopg import Cursor

from shared.domain.applications.provider_accounts import (
    ProviderAccount,
    ProviderName,
    current_provider_accounts,
    plutu_callback_url,
)
from shared.domain.applications.registry import Application
from shared.domain.payment_methods import PaymentMethod
from shared.platform.settings import Settings


class Offer(StrEnum):
    NOT_ENABLED = auto()
    NO_ACCOUNT = auto()
    SANDBOX = auto()
    REAL = auto()


@dataclass(frozen=True, slots=True)
class WayToPay:
    method: PaymentMethod
    offer: Offer
    account: ProviderAccount | None
    callback_url: str | None
    """What the provider is to be told, if it wants to know."""


def ways_to_pay(cursor: Cursor[Any], application: Application, settings: Settings) -> list[WayToPay]:
    accounts = current_provider_accounts(cursor, application.id)
    return [_way(application, method, accounts.get(method), settings) for method in PaymentMethod]


def _way(
    application: Application, method: PaymentMethod, account: ProviderAccount | None, settings: Settings
) -> WayToPay:
    is_plutu = account is not None and account.provider is ProviderName.PLUTU
    if method not in application.methods:
        offer = Offer.NOT_ENABLED
    elif is_plutu:
        offer = Offer.REAL
    else:
        offer = Offer.NO_ACCOUNT if settings.sandbox is None else Offer.SANDBOX
    callback_url = (
        plutu_callback_url(settings.public_urls.checkout, account.id) if account and is_plutu else None
    )
    return WayToPay(method, offer, account, callback_url)

"""Which provider an application's customers pay through, method by method."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.checkout.providers.plutu import Plutu, PlutuCredentials
from services.checkout.providers.port import Provider
from services.checkout.providers.sandbox import Sandbox
from shared.applications.provider_accounts import Adapter, ProviderAccount, current_accounts, get_account
from shared.payment_method import PaymentMethod
from shared.sealing import SecretBox
from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class Account:
    """A provider with its credentials."""

    id: UUID | None
    """None: the sandbox that everybody in development shares."""
    provider: Provider


class AccountUnusableError(Exception):
    """The provider of an attempt cannot be talked to here: its adapter is not configured any more."""


class Accounts:
    def __init__(self, settings: Settings, box: SecretBox) -> None:
        self._settings = settings
        self._box = box

    def offered(
        self, cursor: Cursor[Any], application_id: UUID, methods: Iterable[PaymentMethod], amount: int
    ) -> dict[PaymentMethod, Account]:
        """The enabled methods through which exactly this much can be paid, in the order of the page."""
        enabled = set(methods)
        own = current_accounts(cursor, self._box, application_id)
        found = {method: self._account(own.get(method)) for method in PaymentMethod if method in enabled}
        return {
            method: account
            for method, account in found.items()
            if account is not None and account.provider.takes(amount)
        }

    def of_attempt(self, cursor: Cursor[Any], account_id: UUID | None) -> Account:
        """The one that it began with."""
        account = self._account(None if account_id is None else get_account(cursor, self._box, account_id))
        if account is None:
            raise AccountUnusableError(f"account {account_id or 'of the sandbox'} cannot be used here")
        return account

    def plutu_secret(self, cursor: Cursor[Any], account_id: UUID) -> str:
        """What its returns and callbacks are signed with."""
        return get_account(cursor, self._box, account_id).credentials["secret_key"]

    def _account(self, own: ProviderAccount | None) -> Account | None:
        if own is not None and own.adapter is Adapter.PLUTU:
            return Account(own.id, self._plutu(own.credentials))
        sandbox = self._settings.sandbox
        if sandbox is None:
            return None
        notify_url = f"{self._settings.public_urls.checkout}/providers/sandbox/notifications"
        timeout_s = self._settings.checkout.provider_timeout_s
        return Account(None if own is None else own.id, Sandbox(sandbox, notify_url, timeout_s))

    def _plutu(self, credentials: Mapping[str, str]) -> Plutu:
        checkout = self._settings.checkout
        return Plutu(
            checkout.plutu_url,
            PlutuCredentials(**credentials),
            return_url_base=self._settings.public_urls.checkout,
            timeout_s=checkout.provider_timeout_s,
        )

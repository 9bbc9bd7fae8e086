"""Which provider an application's customers pay through, method by method."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.checkout.providers.plutu import Plutu, PlutuCredentials
from services.checkout.providers.port import Provider
from services.checkout.providers.sandbox import Sandbox
from services.checkout.providers.timed import Timed
from shared.domain.applications.provider_accounts import (
    Adapter,
    ProviderAccount,
    current_accounts,
    find_account,
    get_account,
)
from shared.domain.payment_methods import PaymentMethod
from shared.platform.encryption import CannotOpenSealError, SecretBox
from shared.platform.settings import Settings

_log = logging.getLogger(__name__)


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
        own = current_accounts(cursor, application_id)
        found = {method: self._account(own.get(method)) for method in PaymentMethod if method in enabled}
        return {
            method: account
            for method, account in found.items()
            if account is not None and account.provider.takes(amount)
        }

    def of_attempt(self, cursor: Cursor[Any], account_id: UUID | None) -> Account:
        """The one that it began with."""
        account = self._account(None if account_id is None else get_account(cursor, account_id))
        if account is None:
            raise AccountUnusableError(f"account {account_id or 'of the sandbox'} cannot be used here")
        return account

    def plutu_secrets(self, cursor: Cursor[Any], account_id: UUID) -> list[str]:
        """What news of an attempt may be signed with: its own account's key, or one that the application has now.

        Plutu knows of one address and one key, whatever was set here since, and for which method.
        """
        own = get_account(cursor, account_id)
        now = current_accounts(cursor, own.application_id).values()
        opened = [self._opened(account) for account in [own, *now] if account.adapter is Adapter.PLUTU]
        return [credentials["secret_key"] for credentials in opened if credentials is not None]

    def application_of(self, cursor: Cursor[Any], account_id: UUID) -> UUID | None:
        account = find_account(cursor, account_id)
        return None if account is None else account.application_id

    def _opened(self, account: ProviderAccount) -> Mapping[str, str] | None:
        """None where it cannot be opened: the others still can."""
        try:
            return account.opened(self._box)
        except CannotOpenSealError as error:
            _log.error("%s", error)
            return None

    def _account(self, own: ProviderAccount | None) -> Account | None:
        if own is not None and own.adapter is Adapter.PLUTU:
            credentials = self._opened(own)
            return None if credentials is None else Account(own.id, Timed(self._plutu(credentials)))
        sandbox = self._settings.sandbox
        if sandbox is None:
            return None
        checkout_url = sandbox.notify_url or self._settings.public_urls.checkout
        notify_url = f"{checkout_url}/providers/sandbox/notifications"
        timeout_s = self._settings.checkout.provider_timeout_s
        provider = Timed(Sandbox(sandbox, notify_url, timeout_s))
        return Account(None if own is None else own.id, provider)

    def _plutu(self, credentials: Mapping[str, str]) -> Plutu:
        checkout = self._settings.checkout
        return Plutu(
            checkout.plutu_url,
            PlutuCredentials(**credentials),
            return_url_base=self._settings.public_urls.checkout,
            timeout_s=checkout.provider_timeout_s,
        )

"""A provider whose answers are timed and counted, whichever it is."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.checkout.metrics import PROVIDER_CALLS
from services.checkout.providers.interface import (
    Card,
    FailureReason,
    PaymentRequest,
    Provider,
    ProviderResponse,
    SubmittedCode,
    Wallet,
)
from services.checkout.providers.plutu import PlutuCredentials, PlutuProvider
from services.checkout.providers.sandbox import SandboxProvider
from shared.domain.applications.provider_accounts import (
    ProviderAccount,
    ProviderName,
    current_provider_accounts,
    find_provider_account,
    get_provider_account,
)
from shared.domain.attempts.states import AttemptState
from shared.domain.payment_methods import PaymentMethod
from shared.platform.encryption import DecryptionError, SecretBox
from shared.platform.settings import Settings


class TimedProvider:
    def __init__(self, provider: Provider) -> None:
        self.name = provider.name
        self._provider = provider

    def initial_state(self, method: PaymentMethod) -> AttemptState:
        return self._provider.initial_state(method)

    def accepts_amount(self, amount: int) -> bool:
        return self._provider.accepts_amount(amount)

    def start(self, payment: PaymentRequest, details: Card | Wallet | None) -> ProviderResponse:
        return self._timed("start", lambda: self._provider.start(payment, details))

    def confirm(self, payment: PaymentRequest, entered: SubmittedCode) -> ProviderResponse:
        return self._timed("confirm", lambda: self._provider.confirm(payment, entered))

    def status(self, payment: PaymentRequest) -> ProviderResponse:
        return self._timed("status", lambda: self._provider.status(payment))

    def _timed(self, verb: str, ask: Callable[[], ProviderResponse]) -> ProviderResponse:
        began = perf_counter()
        answer = ask()
        is_away = answer.outcome.reason == FailureReason.PROVIDER_AWAY
        said = "unreachable" if is_away else answer.outcome.answer
        PROVIDER_CALLS.labels(self.name, verb, said).observe(perf_counter() - began)
        return answer


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConfiguredProvider:
    """A provider with its credentials."""

    id: UUID | None
    """None: the sandbox that everybody in development shares."""
    provider: Provider


class ProviderNotConfiguredError(Exception):
    """The provider of an attempt cannot be talked to here: its adapter is not configured any more."""


class ProviderRegistry:
    def __init__(self, settings: Settings, box: SecretBox) -> None:
        self._settings = settings
        self._box = box

    def available_methods(
        self, cursor: Cursor[Any], application_id: UUID, methods: Iterable[PaymentMethod], amount: int
    ) -> dict[PaymentMethod, ConfiguredProvider]:
        """The enabled methods through which exactly this much can be paid, in the order of the page."""
        enabled = set(methods)
        own = current_provider_accounts(cursor, application_id)
        found = {method: self._account(own.get(method)) for method in PaymentMethod if method in enabled}
        return {
            method: account
            for method, account in found.items()
            if account is not None and account.provider.accepts_amount(amount)
        }

    def for_attempt(self, cursor: Cursor[Any], account_id: UUID | None) -> ConfiguredProvider:
        """The one that it began with."""
        account = self._account(None if account_id is None else get_provider_account(cursor, account_id))
        if account is None:
            raise ProviderNotConfiguredError(f"account {account_id or 'of the sandbox'} cannot be used here")
        return account

    def plutu_secrets(self, cursor: Cursor[Any], account_id: UUID) -> list[str]:
        """What news of an attempt may be signed with: its own account's key, or one that the application has now.

        Plutu knows of one address and one key, whatever was set here since, and for which method.
        """
        own = get_provider_account(cursor, account_id)
        now = current_provider_accounts(cursor, own.application_id).values()
        opened = [self._opened(account) for account in [own, *now] if account.provider is ProviderName.PLUTU]
        return [credentials["secret_key"] for credentials in opened if credentials is not None]

    def application_id_of(self, cursor: Cursor[Any], account_id: UUID) -> UUID | None:
        account = find_provider_account(cursor, account_id)
        return None if account is None else account.application_id

    def _opened(self, account: ProviderAccount) -> Mapping[str, str] | None:
        """None where it cannot be opened: the others still can."""
        try:
            return account.decrypt_credentials(self._box)
        except DecryptionError as error:
            _log.error("%s", error)
            return None

    def _account(self, own: ProviderAccount | None) -> ConfiguredProvider | None:
        if own is not None and own.provider is ProviderName.PLUTU:
            credentials = self._opened(own)
            return (
                None
                if credentials is None
                else ConfiguredProvider(own.id, TimedProvider(self._plutu(credentials)))
            )
        sandbox = self._settings.sandbox
        if sandbox is None:
            return None
        checkout_url = sandbox.notify_url or self._settings.public_urls.checkout
        notify_url = f"{checkout_url}/providers/sandbox/notifications"
        timeout_s = self._settings.checkout.provider_timeout_s
        provider = TimedProvider(SandboxProvider(sandbox, notify_url, timeout_s))
        return ConfiguredProvider(None if own is None else own.id, provider)

    def _plutu(self, credentials: Mapping[str, str]) -> PlutuProvider:
        checkout = self._settings.checkout
        return PlutuProvider(
            checkout.plutu_url,
            PlutuCredentials(**credentials),
            return_url_base=self._settings.public_urls.checkout,
            timeout_s=checkout.provider_timeout_s,
        )

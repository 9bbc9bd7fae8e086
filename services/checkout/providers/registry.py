"""Chooses and configures the provider of a payment: by method for an application, by account for an attempt.

To add a provider, implement `Provider` and create it in `ProviderRegistry`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import BoundedSemaphore
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
from shared.domain.applications.modes import ApplicationMode
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
from shared.platform.settings import Environment, Settings


class TimedProvider:
    """Wraps a provider and measures the duration of its requests."""

    def __init__(self, provider: Provider) -> None:
        self.name = provider.name
        self._provider = provider

    def initial_state(self, method: PaymentMethod) -> AttemptState:
        return self._provider.initial_state(method)

    def accepts_amount(self, amount: int) -> bool:
        return self._provider.accepts_amount(amount)

    def start(self, payment: PaymentRequest, details: Card | Wallet | None) -> ProviderResponse:
        return self._timed("start", lambda: self._provider.start(payment, details))

    def can_resend_code(self, method: PaymentMethod) -> bool:
        return self._provider.can_resend_code(method)

    def resend_code(
        self, payment: PaymentRequest, continuation: str | None, wallet: Wallet | None
    ) -> ProviderResponse:
        return self._timed("start", lambda: self._provider.resend_code(payment, continuation, wallet))

    def confirm(self, payment: PaymentRequest, entered: SubmittedCode) -> ProviderResponse:
        return self._timed("confirm", lambda: self._provider.confirm(payment, entered))

    def status(self, payment: PaymentRequest) -> ProviderResponse:
        return self._timed("status", lambda: self._provider.status(payment))

    def _timed(self, verb: str, call: Callable[[], ProviderResponse]) -> ProviderResponse:
        began = perf_counter()
        response = call()
        is_away = response.outcome.reason == FailureReason.PROVIDER_AWAY
        outcome = "unreachable" if is_away else response.outcome.answer
        PROVIDER_CALLS.labels(self.name, verb, outcome).observe(perf_counter() - began)
        return response


_log = logging.getLogger(__name__)
_SANDBOX_REQUESTS = 32
"""In production, of each process: test cards that never answer must not hold all threads, which live customers need."""


@dataclass(frozen=True, slots=True)
class ConfiguredProvider:
    """A provider that is ready to use, with the account that it charges for."""

    id: UUID | None
    """None for the sandbox, which all test applications share."""
    provider: Provider


class ProviderNotConfiguredError(Exception):
    """The provider of an attempt is no longer configured in this process."""


class ProviderRegistry:
    """Configured providers, built from the settings and the encrypted accounts of applications."""

    def __init__(self, settings: Settings, box: SecretBox) -> None:
        self._settings = settings
        self._box = box
        is_production = settings.environment is Environment.PRODUCTION
        self._sandbox_slots = BoundedSemaphore(_SANDBOX_REQUESTS) if is_production else None

    def available_methods(
        self,
        cursor: Cursor[Any],
        application_id: UUID,
        mode: ApplicationMode,
        methods: Iterable[PaymentMethod],
        amount: int,
    ) -> dict[PaymentMethod, ConfiguredProvider]:
        """Return the enabled methods that can charge exactly this amount, in the order of the page.

        A test application pays at the sandbox only, a live one at its own accounts only.
        """
        enabled = set(methods)
        if mode is ApplicationMode.TEST:
            sandbox = self._sandbox(None)
            found = {method: sandbox for method in PaymentMethod if method in enabled}
        else:
            own = current_provider_accounts(cursor, application_id)
            found = {
                method: self._plutu(own[method])
                for method in PaymentMethod
                if method in enabled and method in own and own[method].provider is ProviderName.PLUTU
            }
        return {
            method: account
            for method, account in found.items()
            if account is not None and account.provider.accepts_amount(amount)
        }

    def for_attempt(self, cursor: Cursor[Any], account_id: UUID | None) -> ConfiguredProvider:
        """Return the provider that the attempt was started with. Raises ProviderNotConfiguredError."""
        own = None if account_id is None else get_provider_account(cursor, account_id)
        if own is not None and own.provider is ProviderName.PLUTU:
            account = self._plutu(own)
        else:
            account = self._sandbox(account_id)
        if account is None:
            raise ProviderNotConfiguredError(
                f"the provider of account {account_id or 'sandbox'} is not configured"
            )
        return account

    def plutu_secrets(self, cursor: Cursor[Any], account_id: UUID) -> list[str]:
        """Return the keys that may sign notifications of an attempt: its account's and the application's current ones.

        Plutu stores one URL and one key, whatever was configured here since and for which method.
        """
        own = get_provider_account(cursor, account_id)
        now = current_provider_accounts(cursor, own.application_id).values()
        decrypted = [
            self._decrypt_credentials(account)
            for account in [own, *now]
            if account.provider is ProviderName.PLUTU
        ]
        return [credentials["secret_key"] for credentials in decrypted if credentials is not None]

    def application_id_of(self, cursor: Cursor[Any], account_id: UUID) -> UUID | None:
        account = find_provider_account(cursor, account_id)
        return None if account is None else account.application_id

    def _decrypt_credentials(self, account: ProviderAccount) -> Mapping[str, str] | None:
        """Return the credentials, or None if they cannot be decrypted, so that other accounts still work."""
        try:
            return account.decrypt_credentials(self._box)
        except DecryptionError as error:
            _log.error("%s", error)
            return None

    def _sandbox(self, account_id: UUID | None) -> ConfiguredProvider | None:
        sandbox = self._settings.sandbox
        if sandbox is None:
            return None
        checkout_url = sandbox.notify_url or self._settings.public_urls.checkout
        notify_url = f"{checkout_url}/providers/sandbox/notifications"
        timeout_s = self._settings.checkout.provider_timeout_s
        provider = SandboxProvider(sandbox, notify_url, timeout_s, self._sandbox_slots)
        return ConfiguredProvider(account_id, TimedProvider(provider))

    def _plutu(self, account: ProviderAccount) -> ConfiguredProvider | None:
        credentials = self._decrypt_credentials(account)
        if credentials is None:
            return None
        checkout = self._settings.checkout
        provider = PlutuProvider(
            checkout.plutu_url,
            PlutuCredentials(**credentials),
            return_url_base=self._settings.public_urls.checkout,
            timeout_s=checkout.provider_timeout_s,
        )
        return ConfiguredProvider(account.id, TimedProvider(provider))

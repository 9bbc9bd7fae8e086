"""What commands that pay need to know of the sandbox: whether there is one, and whether it handles a payment."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.applications.provider_accounts import ProviderName, describe_provider_accounts
from shared.domain.payment_methods import PaymentMethod
from shared.platform.errors import RefusedError
from shared.platform.settings import Environment, SandboxSettings, Settings


class NoSandboxError(RefusedError):
    """The command would use a real provider, or there is nothing to pay with."""


def require_sandbox(settings: Settings) -> SandboxSettings:
    """Return the settings of the sandbox. Raises NoSandboxError in production, and if there is no sandbox."""
    if settings.environment is Environment.PRODUCTION:
        raise NoSandboxError("refused: this command pays in the sandbox, which production does not have")
    if settings.sandbox is None:
        raise NoSandboxError("refused: this stack has no sandbox (SANDBOX_SECRET is not set)")
    return settings.sandbox


def check_pays_in_sandbox(connection: Connection[Any], application_id: UUID, method: PaymentMethod) -> None:
    """Raise NoSandboxError if another provider handles this method of the application."""
    with connection.cursor() as cursor:
        account = describe_provider_accounts(cursor, application_id).get(method)
    if account is not None and account.provider is not ProviderName.SANDBOX:
        raise NoSandboxError(
            f"refused: {account.provider} handles {method} for this application, not the sandbox"
        )

"""Provider accounts: which provider, with which credentials, handles each payment method of an application.

An account is replaced, never changed: an attempt is settled with the account it started with.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from psycopg import Connection, Cursor

from shared.domain.applications.errors import ApplicationNotFoundError
from shared.domain.applications.modes import ApplicationMode
from shared.domain.payment_methods import PaymentMethod
from shared.platform.encryption import SecretBox
from shared.platform.errors import RefusedError


class ProviderName(StrEnum):
    SANDBOX = "sandbox"
    PLUTU = "plutu"


# What an HTTP header can carry: a pasted line break would make every request fail.
_VALID_CREDENTIAL = re.compile(r"[!-~]{1,2000}")

REQUIRED_CREDENTIALS: Mapping[ProviderName, tuple[str, ...]] = {
    ProviderName.PLUTU: ("api_key", "access_token", "secret_key"),
}
"""The credentials that each provider requires. The sandbox needs no account."""


class CredentialsIncompleteError(RefusedError):
    def __init__(self, provider: ProviderName) -> None:
        wanted = ", ".join(REQUIRED_CREDENTIALS[provider])
        super().__init__(f"an account of {provider} needs exactly these credentials: {wanted}")


class NotLiveError(RefusedError):
    """A test application pays at the sandbox only."""

    def __init__(self) -> None:
        super().__init__("this is a test application, which pays at the sandbox; create a live one")


class InvalidCredentialError(RefusedError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is empty, too long, or has spaces or other characters that are not allowed")
        self.name = name


@dataclass(frozen=True, slots=True)
class AccountDescription:
    """An account without its credentials, for pages that show it: the dashboard's role cannot read them."""

    id: UUID
    application_id: UUID
    method: PaymentMethod
    provider: ProviderName
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ProviderAccount(AccountDescription):
    sealed: str | None = field(repr=False)

    def decrypt_credentials(self, box: SecretBox) -> Mapping[str, str]:
        """Return its credentials."""
        if self.sealed is None:
            return {}
        credentials: dict[str, str] = json.loads(box.decrypt(self.sealed, _purpose(self.id)))
        return credentials


_LOCK = "select mode from applications where id = %s for no key update"
_REPLACE = """
update provider_accounts set replaced_at = mizan_now()
where application_id = %s and method = %s and replaced_at is null"""
_ADD = """
insert into provider_accounts (id, application_id, method, adapter, encrypted_credentials)
values (%s, %s, %s, %s, %s)"""
_DESCRIPTION = "select id, application_id, method, adapter, created_at"
_OF_APPLICATION = "from provider_accounts where application_id = %s and replaced_at is null"
_DESCRIBE = f"{_DESCRIPTION} {_OF_APPLICATION}"
_CURRENT = f"{_DESCRIPTION}, encrypted_credentials {_OF_APPLICATION}"
_GET = f"{_DESCRIPTION}, encrypted_credentials from provider_accounts where id = %s"


def set_provider_account(
    connection: Connection[Any],
    box: SecretBox,
    application_id: UUID,
    method: PaymentMethod,
    *,
    provider: ProviderName,
    credentials: Mapping[str, str],
) -> UUID:
    """Use this account of a live application for all new attempts with this method. Return its id.

    Raises CredentialsIncompleteError, InvalidCredentialError, ApplicationNotFoundError and NotLiveError.
    """
    if set(credentials) != set(REQUIRED_CREDENTIALS[provider]):
        raise CredentialsIncompleteError(provider)
    for name, value in credentials.items():
        if not _VALID_CREDENTIAL.fullmatch(value):
            raise InvalidCredentialError(name)
    row = connection.execute(_LOCK, (application_id,)).fetchone()
    if row is None:
        raise ApplicationNotFoundError(application_id)
    if row[0] != ApplicationMode.LIVE:
        raise NotLiveError
    account = uuid4()
    sealed = box.encrypt(json.dumps(dict(credentials)), _purpose(account))
    connection.execute(_REPLACE, (application_id, method))
    connection.execute(_ADD, (account, application_id, method, provider, sealed))
    return account


def current_provider_accounts(
    cursor: Cursor[Any], application_id: UUID
) -> dict[PaymentMethod, ProviderAccount]:
    """Return the accounts for new attempts."""
    found = [_account(row) for row in cursor.execute(_CURRENT, (application_id,))]
    return {account.method: account for account in found}


def describe_provider_accounts(
    cursor: Cursor[Any], application_id: UUID
) -> dict[PaymentMethod, AccountDescription]:
    """Return the accounts for new attempts, without their credentials."""
    found = [
        AccountDescription(id_, application, PaymentMethod(method), ProviderName(provider), created_at)
        for id_, application, method, provider, created_at in cursor.execute(_DESCRIBE, (application_id,))
    ]
    return {account.method: account for account in found}


def find_provider_account(cursor: Cursor[Any], account_id: UUID) -> ProviderAccount | None:
    """Find an account, also one that was replaced."""
    row = cursor.execute(_GET, (account_id,)).fetchone()
    return None if row is None else _account(row)


def get_provider_account(cursor: Cursor[Any], account_id: UUID) -> ProviderAccount:
    account = find_provider_account(cursor, account_id)
    assert account is not None, "accounts are never deleted"
    return account


def plutu_callback_url(checkout_url: str, account_id: UUID) -> str:
    """Return the callback URL to configure at Plutu."""
    return f"{checkout_url}/providers/plutu/callbacks/{account_id}"


def _account(row: tuple[Any, ...]) -> ProviderAccount:
    account_id, application_id, method, provider, created_at, sealed = row
    return ProviderAccount(
        account_id, application_id, PaymentMethod(method), ProviderName(provider), created_at, sealed
    )


def _purpose(account_id: UUID) -> str:
    return f"provider_account/{account_id}"

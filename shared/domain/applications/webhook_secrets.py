"""Webhook secrets (§6.1, §6.6): one is current; previous versions stay for the retries that started with them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.applications.errors import (
    ApplicationNotFoundError,
    WebhookSecretNotFoundError,
    WebhookSecretRolledError,
)
from shared.platform.encryption import SecretBox
from shared.platform.tokens import new_webhook_secret


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    version: int
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SecretVersion:
    """What may be shown of a secret."""

    number: int
    since: datetime


_LOCK = """
select coalesce(webhook_secret_version, 0) from applications where id = %s for no key update"""
_ADD = "insert into webhook_secrets (application_id, version, encrypted_secret) values (%s, %s, %s)"
_MAKE_CURRENT = "update applications set webhook_secret_version = %s where id = %s"
_CURRENT = """
select s.version, s.created_at from applications as a
join webhook_secrets as s on s.application_id = a.id and s.version = a.webhook_secret_version where a.id = %s"""
_GET = "select encrypted_secret from webhook_secrets where application_id = %s and version = %s"


def roll_webhook_secret(
    connection: Connection[Any], box: SecretBox, application_id: UUID, *, replacing: int | None = None
) -> WebhookSecret:
    """Create a secret for all new deliveries; with `replacing`, only if that version is the current one.

    Raises ApplicationNotFoundError and WebhookSecretRolledError.
    """
    row = connection.execute(_LOCK, (application_id,)).fetchone()
    if row is None:
        raise ApplicationNotFoundError(application_id)
    if replacing is not None and replacing != row[0]:
        raise WebhookSecretRolledError(row[0])
    secret = WebhookSecret(version=row[0] + 1, text=new_webhook_secret())
    sealed = box.encrypt(secret.text, _purpose(application_id, secret.version))
    connection.execute(_ADD, (application_id, secret.version, sealed))
    connection.execute(_MAKE_CURRENT, (secret.version, application_id))
    return secret


def current_secret_version(cursor: Cursor[Any], application_id: UUID) -> SecretVersion | None:
    """Return the current version; None if there was never a secret."""
    row = cursor.execute(_CURRENT, (application_id,)).fetchone()
    return None if row is None else SecretVersion(*row)


def decrypt_webhook_secret(
    connection: Connection[Any], box: SecretBox, application_id: UUID, version: int
) -> WebhookSecret:
    row = connection.execute(_GET, (application_id, version)).fetchone()
    if row is None:
        raise WebhookSecretNotFoundError(application_id, version)
    return WebhookSecret(version, text=box.decrypt(row[0], _purpose(application_id, version)))


def _purpose(application_id: UUID, version: int) -> str:
    return f"webhook_secret/{application_id}/{version}"

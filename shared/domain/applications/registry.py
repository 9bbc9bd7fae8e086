"""The registry of applications: created with their credentials, listed, and changed."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.applications.credentials import CredentialKind, issue_credential
from shared.domain.applications.errors import ApplicationExistsError, ApplicationNotFoundError
from shared.domain.applications.merchants import check_name, create_merchant, find_or_create_merchant
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.webhook_secrets import roll_webhook_secret
from shared.domain.payment_methods import PaymentMethod
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl


@dataclass(frozen=True, slots=True)
class NewApplication:
    name: str
    merchant: UUID | str | None = None
    """An existing merchant's id, or a name; None creates a merchant named like the application."""
    methods: frozenset[PaymentMethod] = frozenset(PaymentMethod)
    webhook_url: WebhookUrl | None = None
    id: UUID | None = None
    """Makes the creation idempotent: a second one with the same id raises ApplicationExistsError."""
    created_by: UUID | None = None
    """The member who creates it, and so issues its first credentials; None for an operator."""
    mode: ApplicationMode = ApplicationMode.TEST


@dataclass(frozen=True, slots=True)
class CreatedApplication:
    """What the developer needs. The key, the token and the secret cannot be shown again."""

    id: UUID
    merchant_id: UUID
    api_key: str = field(repr=False)
    access_token: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Application:
    id: UUID
    name: str
    merchant_id: UUID
    merchant_name: str
    mode: ApplicationMode
    methods: tuple[PaymentMethod, ...]
    webhook_url: str | None
    created_at: datetime
    public_name_ar: str | None = None
    """What customers see at the checkout instead of the merchant's name, by language."""
    public_name_en: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", ApplicationMode(self.mode))
        object.__setattr__(self, "methods", tuple(m for m in PaymentMethod if m in self.methods))


_CREATE = """
insert into applications (id, merchant_id, name, webhook_url, mode)
values (coalesce(%s, uuidv7()), %s, %s, %s, %s)
on conflict (id) do nothing returning id"""

_RENAME = "update applications set name = %s where id = %s and name <> %s returning old.name"

_ENABLE_METHODS = "insert into application_methods (application_id, method) select %s, unnest(%s::text[])"

_SET_WEBHOOK_URL = "update applications set webhook_url = %s where id = %s returning old.webhook_url"

_COLUMNS = """a.id, a.name, a.merchant_id, m.name as merchant_name, a.mode, a.webhook_url, a.created_at,
       a.public_name_ar, a.public_name_en,
       array(select method from application_methods where application_id = a.id) as methods
from applications a join merchants m on m.id = a.merchant_id"""
_LIST = f"select {_COLUMNS} order by a.id"
_OF_MERCHANT = f"select {_COLUMNS} where a.merchant_id = %s order by a.id"
_GET = f"select {_COLUMNS} where a.id = %s"
_NAMES = "select id, name from applications where id = any(%s::uuid[])"


def create_application(
    connection: Connection[Any], box: SecretBox, new: NewApplication
) -> CreatedApplication:
    """Create an application with its merchant, methods, first credentials and webhook secret, in one transaction.

    Raises ApplicationExistsError, InvalidNameError, MerchantNotFoundError and MerchantAmbiguousError.
    """
    name = check_name(new.name, of="application")
    if new.merchant is None:
        # Never looked up by name: it could be the merchant of somebody else with the same name.
        merchant_id = create_merchant(connection, name)
    else:
        merchant_id = find_or_create_merchant(connection, new.merchant)
    row = connection.execute(_CREATE, (new.id, merchant_id, name, new.webhook_url, new.mode)).fetchone()
    if row is None:
        assert new.id is not None
        raise ApplicationExistsError(new.id)
    application_id = row[0]
    connection.execute(_ENABLE_METHODS, (application_id, sorted(new.methods)))
    api_key, access_token = (
        issue_credential(connection, application_id, kind, issued_by=new.created_by).text
        for kind in (CredentialKind.API_KEY, CredentialKind.ACCESS_TOKEN)
    )
    return CreatedApplication(
        id=application_id,
        merchant_id=merchant_id,
        api_key=api_key,
        access_token=access_token,
        webhook_secret=roll_webhook_secret(connection, box, application_id).text,
    )


def rename_application(connection: Connection[Any], application_id: UUID, name: str) -> str | None:
    """Return the previous name, or None if it was the same."""
    name = check_name(name, of="application")
    row = connection.execute(_RENAME, (name, application_id, name)).fetchone()
    return None if row is None else str(row[0])


def set_webhook_url(connection: Connection[Any], application_id: UUID, url: WebhookUrl | None) -> str | None:
    """Set the webhook URL and return the previous one. None removes it: no webhooks are sent (§6.1).

    Raises ApplicationNotFoundError.
    """
    row = connection.execute(_SET_WEBHOOK_URL, (url, application_id)).fetchone()
    if row is None:
        raise ApplicationNotFoundError(application_id)
    return None if row[0] is None else str(row[0])


def list_applications(connection: Connection[Any]) -> list[Application]:
    """Return all applications, oldest first."""
    with connection.cursor(row_factory=class_row(Application)) as cursor:
        return cursor.execute(_LIST).fetchall()


def list_merchant_applications(connection: Connection[Any], merchant_id: UUID) -> list[Application]:
    """Return the applications of one merchant, oldest first."""
    with connection.cursor(row_factory=class_row(Application)) as cursor:
        return cursor.execute(_OF_MERCHANT, (merchant_id,)).fetchall()


def application_names(connection: Connection[Any], application_ids: Collection[UUID]) -> dict[UUID, str]:
    return dict(connection.execute(_NAMES, (list(application_ids),)).fetchall())


def get_application(connection: Connection[Any], application_id: UUID) -> Application:
    with connection.cursor(row_factory=class_row(Application)) as cursor:
        found = cursor.execute(_GET, (application_id,)).fetchone()
    if found is None:
        raise ApplicationNotFoundError(application_id)
    return found

"""Queries for an application's pages: enabled methods, their availability at the checkout, and previous secrets."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from shared.domain.applications.errors import ApplicationNotFoundError, NoMethodsError
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.provider_accounts import (
    AccountDescription,
    ProviderName,
    describe_provider_accounts,
    plutu_callback_url,
)
from shared.domain.applications.registry import Application
from shared.domain.deliveries.try_results import FACET_SQL, matching_facets
from shared.domain.payment_methods import PaymentMethod
from shared.platform.settings import Settings

_MAX_COUNTED = 5000

_LOCK_APPLICATION = "select from applications where id = %s for no key update"
_ENABLED_METHODS = "select method from application_methods where application_id = %s order by method"
_DISABLE_METHODS = "delete from application_methods where application_id = %s and method <> all(%s)"
_ENABLE_METHODS = """
insert into application_methods (application_id, method) select %s, unnest(%s::text[]) on conflict do nothing"""


def set_methods(
    connection: Connection[Any], application_id: UUID, methods: AbstractSet[PaymentMethod]
) -> list[str] | None:
    """Enable exactly these methods. Return the previous ones if they differ, else None.

    Raises NoMethodsError and ApplicationNotFoundError.
    """
    if not methods:
        raise NoMethodsError
    if not connection.execute(_LOCK_APPLICATION, (application_id,)).rowcount:
        raise ApplicationNotFoundError(application_id)
    before = [row[0] for row in connection.execute(_ENABLED_METHODS, (application_id,))]
    values = (application_id, sorted(methods))
    connection.execute(_DISABLE_METHODS, values)
    connection.execute(_ENABLE_METHODS, values)
    return before if before != sorted(methods) else None


# By facet and not by status, because the facet has an index.
_COUNT_PREVIOUS_SECRET = f"""
select count(*) filter (where secret_version < %(version)s), count(*)
from (select secret_version from webhook_deliveries
      where application_id = %(application)s
        and {FACET_SQL} = any(%(pending)s::smallint[])
      limit %(most)s) as pending"""


@dataclass(frozen=True, slots=True)
class PreviousSecretCount:
    """How many pending deliveries will still be signed with a secret from before the last roll."""

    count: int
    is_exact: bool
    """False if more are pending than were counted."""


def count_pending_with_previous_secret(
    cursor: Cursor[Any], application_id: UUID, version: int
) -> PreviousSecretCount:
    values = {
        "application": application_id,
        "version": version,
        "pending": matching_facets(status="pending"),
        "most": _MAX_COUNTED,
    }
    row = cursor.execute(_COUNT_PREVIOUS_SECRET, values).fetchone()
    assert row is not None
    count, examined = row
    return PreviousSecretCount(count, examined < _MAX_COUNTED)


class Availability(StrEnum):
    """Whether customers are offered a payment method, by the same rule as the checkout."""

    NOT_ENABLED = auto()
    NO_ACCOUNT = auto()
    SANDBOX = auto()
    REAL = auto()


@dataclass(frozen=True, slots=True)
class MethodAvailability:
    method: PaymentMethod
    availability: Availability
    account: AccountDescription | None
    callback_url: str | None
    """The URL to enter at the provider, if it needs one."""


def list_method_availability(
    cursor: Cursor[Any], application: Application, settings: Settings
) -> list[MethodAvailability]:
    accounts = describe_provider_accounts(cursor, application.id)
    return [
        _method_availability(application, method, accounts.get(method), settings) for method in PaymentMethod
    ]


def _method_availability(
    application: Application, method: PaymentMethod, account: AccountDescription | None, settings: Settings
) -> MethodAvailability:
    is_plutu = account is not None and account.provider is ProviderName.PLUTU
    if method not in application.methods:
        availability = Availability.NOT_ENABLED
    elif application.mode is ApplicationMode.TEST:
        availability = Availability.SANDBOX
    else:
        availability = Availability.REAL if is_plutu else Availability.NO_ACCOUNT
    callback_url = (
        plutu_callback_url(settings.public_urls.checkout, account.id) if account and is_plutu else None
    )
    return MethodAvailability(method, availability, account, callback_url)

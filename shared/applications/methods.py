"""How an application's customers can pay: the methods it has enabled."""

from collections.abc import Set as AbstractSet
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.applications.errors import ApplicationNotFoundError, NoMethodsError
from shared.payment_method import PaymentMethod

_LOCK = "select from applications where id = %s for no key update"
_DISABLE = "delete from application_methods where application_id = %s and method <> all(%s)"
_ENABLE = """
insert into application_methods (application_id, method) select %s, unnest(%s::text[]) on conflict do nothing"""


def set_methods(
    connection: Connection[Any], application_id: UUID, methods: AbstractSet[PaymentMethod]
) -> bool:
    """From now on these and no others; whether that changed anything."""
    if not methods:
        raise NoMethodsError
    if not connection.execute(_LOCK, (application_id,)).rowcount:
        raise ApplicationNotFoundError(application_id)
    values = (application_id, sorted(methods))
    disabled = connection.execute(_DISABLE, values).rowcount
    enabled = connection.execute(_ENABLE, values).rowcount
    return bool(disabled or enabled)

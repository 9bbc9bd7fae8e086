"""How an application's customers can pay: the methods it has enabled."""

from collections.abc import Set as AbstractSet
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.applications.errors import ApplicationNotFoundError, NoMethodsError
from shared.domain.payment_methods import PaymentMethod

_LOCK = "select from applications where id = %s for no key update"
_BEFORE = "select method from application_methods where application_id = %s order by method"
_DISABLE = "delete from application_methods where application_id = %s and method <> all(%s)"
_ENABLE = """
insert into application_methods (application_id, method) select %s, unnest(%s::text[]) on conflict do nothing"""


def set_methods(
    connection: Connection[Any], application_id: UUID, methods: AbstractSet[PaymentMethod]
) -> list[str] | None:
    """From now on these and no others. Returns those before, if they were others."""
    if not methods:
        raise NoMethodsError
    if not connection.execute(_LOCK, (application_id,)).rowcount:
        raise ApplicationNotFoundError(application_id)
    before = [row[0] for row in connection.execute(_BEFORE, (application_id,))]
    values = (application_id, sorted(methods))
    connection.execute(_DISABLE, values)
    connection.execute(_ENABLE, values)
    return before if before != sorted(methods) else None

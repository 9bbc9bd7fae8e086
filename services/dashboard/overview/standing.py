"""How an application stands: what is set up, and whether anything has happened yet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

_LOOK = """
select mizan_now() as now, webhooks_paused_at as paused_at,
       exists (select from credentials where application_id = a.id and kind = 'api_key' and revoked_at is null)
       and exists (select from credentials where application_id = a.id and kind = 'access_token' and revoked_at is null)
           as has_credentials,
       exists (select from payment_intents where application_id = a.id) as has_payments
from applications as a where id = %s"""


@dataclass(frozen=True, slots=True)
class Standing:
    now: datetime
    """By the database's clock."""
    paused_at: datetime | None
    """An operator has paused its webhooks."""
    has_credentials: bool
    """An API key and an access token that work."""
    has_payments: bool


def look(connection: Connection[Any], application_id: UUID) -> Standing:
    with connection.cursor(row_factory=class_row(Standing)) as cursor:
        found = cursor.execute(_LOOK, (application_id,)).fetchone()
    assert found is not None
    return found

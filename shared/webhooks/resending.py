"""Asks for a resend (§6.6): one more try at once, with the URL and the secret that the application has then.

The wish goes through the outbox to webhooks.resend; the webhook service meets it once, whatever happens on the way.
"""

from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.applications.errors import RefusedError
from shared.topics import WEBHOOKS_RESEND

_STANDING = """
select a.webhook_url is not null, a.webhooks_paused_at is not null
from webhook_deliveries as d join applications as a on a.id = d.application_id where d.id = %s"""
_REQUEST = """
insert into outbox (topic, key, payload)
select %(topic)s, id, resend_requested_message(%(resend)s, id, application_id)
from webhook_deliveries where id = %(delivery)s"""


class ResendRefusedError(RefusedError):
    """It cannot be resent now; the text says why."""


class DeliveryNotFoundError(RefusedError):
    def __init__(self, delivery_id: UUID) -> None:
        super().__init__(f"there is no delivery {delivery_id}")


def request_resend(connection: Connection[Any], delivery_id: UUID, resend_id: UUID) -> None:
    """`resend_id` names the wish: asking twice with one id sends once."""
    row = connection.execute(_STANDING, (delivery_id,)).fetchone()
    if row is None:
        raise DeliveryNotFoundError(delivery_id)
    has_url, is_paused = row
    if not has_url:
        raise ResendRefusedError("the application has no webhook URL; set one first")
    if is_paused:
        raise ResendRefusedError("an operator has paused this application's webhooks")
    connection.execute(
        _REQUEST, {"topic": WEBHOOKS_RESEND.name, "resend": resend_id, "delivery": delivery_id}
    )

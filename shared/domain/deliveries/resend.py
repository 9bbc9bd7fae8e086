"""Requests resends (§6.6): one more try at once, with the URL and secret that the application has at that time.

The request goes through the outbox to webhooks.resend. The webhook service sends it once, also after crashes.
"""

from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.deliveries.pause import check_can_send
from shared.domain.topics import WEBHOOKS_RESEND
from shared.platform.errors import RefusedError
from shared.platform.tracing.spans import current_trace

_APPLICATION_ID = "select application_id from webhook_deliveries where id = %s"
_REQUEST = "insert into resend_requests (id, delivery_id) values (%s, %s) on conflict (id) do nothing"
_PUBLISH = """
insert into outbox (topic, key, payload, trace)
values (%(topic)s, %(delivery)s, resend_requested_message(%(resend)s, %(delivery)s, %(application)s), %(trace)s)"""


class DeliveryNotFoundError(RefusedError):
    def __init__(self, delivery_id: UUID) -> None:
        super().__init__(f"there is no delivery {delivery_id}")


def get_application_id(connection: Connection[Any], delivery_id: UUID) -> UUID:
    """Return the application of a delivery. Raises DeliveryNotFoundError."""
    row = connection.execute(_APPLICATION_ID, (delivery_id,)).fetchone()
    if row is None:
        raise DeliveryNotFoundError(delivery_id)
    return UUID(str(row[0]))


def request_resend(connection: Connection[Any], delivery_id: UUID, resend_id: UUID) -> bool:
    """Request a resend. `resend_id` makes it idempotent: a second request with the same id returns False.

    Raises DeliveryNotFoundError, or SendingRefusedError if nothing can be sent to the application now.
    """
    application_id = get_application_id(connection, delivery_id)
    check_can_send(connection, application_id)
    if connection.execute(_REQUEST, (resend_id, delivery_id)).rowcount == 0:
        return False
    values = {
        "topic": WEBHOOKS_RESEND.name,
        "delivery": delivery_id,
        "resend": resend_id,
        "application": application_id,
        "trace": current_trace(),
    }
    connection.execute(_PUBLISH, values)
    return True


def resend_exhausted(connection: Connection[Any], delivery_id: UUID, resend_id: UUID, actor: Actor) -> bool:
    """Request a resend of a delivery whose tries are exhausted, and write it to the audit log.

    Returns and raises the same as `request_resend`.
    """
    if not request_resend(connection, delivery_id, resend_id):
        return False
    add_audit_entry(
        connection,
        actor,
        Action.DELIVERY_RESENT,
        application_id=get_application_id(connection, delivery_id),
        details={"delivery": str(delivery_id)},
    )
    return True

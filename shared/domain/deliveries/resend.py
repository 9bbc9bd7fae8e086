"""Requests resends (§6.6): one more try at once, with the URL and secret that the application has at that time.

The request goes through the outbox to webhooks.resend. The webhook service sends it once, also after crashes.
"""

from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.deliveries.pause import check_can_send
from shared.domain.outbox import wake_relay
from shared.domain.topics import WEBHOOKS_RESEND
from shared.platform.database.pool import fetch_scalar
from shared.platform.errors import RefusedError
from shared.platform.tracing.spans import current_trace

MAX_PER_MINUTE = 5
"""Of one delivery. An endpoint is not flooded, and who debugs it does not wait. Bulk resends have their own pace."""

_APPLICATION_ID = "select application_id from webhook_deliveries where id = %s"
# Requests for one delivery take turns, so that together they cannot exceed the limit.
_LOCK = "select pg_advisory_xact_lock('resend_requests'::regclass::oid::integer, hashtext(%s))"
_IS_KNOWN = "select exists (select from resend_requests where id = %s)"
_COUNT_RECENT = """
select count(*) from resend_requests where delivery_id = %s and created_at > mizan_now() - interval '1 minute'"""
_REQUEST = "insert into resend_requests (id, delivery_id) values (%s, %s) on conflict (id) do nothing"
_PUBLISH = """
insert into outbox (topic, key, payload, trace)
values (%(topic)s, %(delivery)s, resend_requested_message(%(resend)s, %(delivery)s, %(application)s), %(trace)s)"""


class DeliveryNotFoundError(RefusedError):
    def __init__(self, delivery_id: UUID) -> None:
        super().__init__(f"there is no delivery {delivery_id}")


class TooManyResendsError(RefusedError):
    def __init__(self) -> None:
        super().__init__(f"this delivery was resent {MAX_PER_MINUTE} times within a minute; wait a minute")


def get_application_id(connection: Connection[Any], delivery_id: UUID) -> UUID:
    """Return the application of a delivery. Raises DeliveryNotFoundError."""
    row = connection.execute(_APPLICATION_ID, (delivery_id,)).fetchone()
    if row is None:
        raise DeliveryNotFoundError(delivery_id)
    return UUID(str(row[0]))


def request_resend(connection: Connection[Any], delivery_id: UUID, resend_id: UUID) -> bool:
    """Request a resend. `resend_id` makes it idempotent: a second request with the same id returns False.

    Raises DeliveryNotFoundError, SendingRefusedError if nothing can be sent to the application now, or
    TooManyResendsError if this delivery was resent too often within the last minute.
    """
    application_id = get_application_id(connection, delivery_id)
    check_can_send(connection, application_id)
    connection.execute(_LOCK, (str(delivery_id),))
    is_known = fetch_scalar(connection, _IS_KNOWN, (resend_id,))
    if not is_known and fetch_scalar(connection, _COUNT_RECENT, (delivery_id,)) >= MAX_PER_MINUTE:
        raise TooManyResendsError
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
    wake_relay(connection)
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

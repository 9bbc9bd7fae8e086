"""Sends a test delivery: signed and retried like any other, but for an intent that does not exist.

It goes through the outbox to webhooks.deliver, and the webhook service treats it like any other.
"""

from typing import Any
from uuid import UUID, uuid4

from psycopg import Connection

from shared.domain.applications.errors import ApplicationNotFoundError
from shared.domain.deliveries.pause import check_can_send
from shared.domain.intents.states import EventType
from shared.domain.outbox import wake_relay
from shared.domain.topics import WEBHOOKS_DELIVER
from shared.platform.tracing.spans import current_trace

_SENT_BEFORE = "select from webhook_deliveries where id = %s"
# Keeps the URL, the secret and the pause unchanged until the delivery is created.
_LOCK = "select from applications where id = %s for share"
_SEND = """
with made as (
    insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, next_due_at, is_test)
    select %(id)s, %(intent)s, id, %(event)s, webhook_url, webhook_secret_version, mizan_now(), true
    from applications where id = %(application)s
    on conflict (id) do nothing
    returning id, application_id, next_due_at
)
insert into outbox (topic, key, payload, trace)
select %(topic)s, application_id, delivery_due_message(id, application_id, 1, next_due_at), %(trace)s from made"""


def send_test_delivery(connection: Connection[Any], application_id: UUID, delivery_id: UUID) -> bool:
    """Create a test delivery and return whether this call created it.

    `delivery_id` is a new UUIDv7 and the idempotency key: calling twice with one id sends one delivery.
    Raises ApplicationNotFoundError and SendingRefusedError.
    """
    if connection.execute(_SENT_BEFORE, (delivery_id,)).rowcount:
        return False
    if not connection.execute(_LOCK, (application_id,)).rowcount:
        raise ApplicationNotFoundError(application_id)
    check_can_send(connection, application_id)
    values = {
        "id": delivery_id,
        "intent": uuid4(),
        "application": application_id,
        "event": EventType.SUCCEEDED,
        "topic": WEBHOOKS_DELIVER.name,
        "trace": current_trace(),
    }
    is_made = bool(connection.execute(_SEND, values).rowcount)
    wake_relay(connection)
    return is_made

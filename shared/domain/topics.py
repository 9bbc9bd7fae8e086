"""All topics. When a service starts, it checks the topics in Kafka against these definitions."""

from datetime import UTC, datetime, timedelta

from shared.domain.messages import DeliveryDue, decode
from shared.platform.kafka.errors import UnreadableMessageError
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import RETRY_STEPS


def read_due_at(value: bytes | None) -> datetime | None:
    """Return when a record of a delay topic is due, or None if it cannot be read and so has no due time."""
    try:
        message = decode(value)
    except UnreadableMessageError:
        return None
    if not isinstance(message, DeliveryDue):
        return None
    return message.due_at if message.due_at.tzinfo else message.due_at.replace(tzinfo=UTC)


_WORK_RETENTION = timedelta(days=7)
_DEAD_RETENTION = timedelta(days=30)

PAYMENT_INTENT_EVENTS = Topic(
    "payment_intents.events", 6, _WORK_RETENTION, key="intent uuid", group="webhooks.intake"
)
WEBHOOKS_DELIVER = Topic("webhooks.deliver", 6, _WORK_RETENTION, key="application", group="webhooks.deliver")
WEBHOOKS_SLOW = Topic("webhooks.slow", 3, _WORK_RETENTION, key="application", group="webhooks.slow")
# The retention is well above the longest delay of 12 hours plus a long outage.
WEBHOOKS_DELAY = tuple(
    Topic(
        f"webhooks.delay.{step}",
        2,
        _WORK_RETENTION,
        key="application",
        group=f"webhooks.delay.{step}",
        due_at=read_due_at,
    )
    for step in range(1, RETRY_STEPS + 1)
)
WEBHOOKS_RESEND = Topic("webhooks.resend", 3, _WORK_RETENTION, key="delivery id", group="webhooks.resend")
WEBHOOKS_DEAD = Topic("webhooks.dead", 1, _DEAD_RETENTION, key="delivery id")
CHECKOUT_VERIFY = Topic("checkout.verify", 3, _WORK_RETENTION, key="attempt id", group="checkout.verify")
# A dead letter holds its whole record in base64, and more.
DEAD_LETTERS = Topic(
    "dead_letters", 1, _DEAD_RETENTION, key="origin topic", max_message_bytes=2 * 1024 * 1024
)

ALL_TOPICS = (
    PAYMENT_INTENT_EVENTS,
    WEBHOOKS_DELIVER,
    WEBHOOKS_SLOW,
    *WEBHOOKS_DELAY,
    WEBHOOKS_RESEND,
    WEBHOOKS_DEAD,
    CHECKOUT_VERIFY,
    DEAD_LETTERS,
)

"""Which record goes to which topic, under which key."""

from shared.kafka.producer import Outgoing
from shared.messages import DeliveryDue, DeliveryExhausted, ResendRequested, encode
from shared.topics import WEBHOOKS_DEAD, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW


def to_deliver(due: DeliveryDue) -> Outgoing:
    return Outgoing(WEBHOOKS_DELIVER.name, str(due.application_id), encode(due))


def to_delay(due: DeliveryDue) -> Outgoing:
    """To the topic whose wait lies between the last step and this one."""
    return Outgoing(WEBHOOKS_DELAY[due.step - 2].name, str(due.application_id), encode(due))


def to_slow(message: DeliveryDue | ResendRequested) -> Outgoing:
    return Outgoing(WEBHOOKS_SLOW.name, str(message.application_id), encode(message))


def to_dead(exhausted: DeliveryExhausted) -> Outgoing:
    return Outgoing(WEBHOOKS_DEAD.name, str(exhausted.id), encode(exhausted))

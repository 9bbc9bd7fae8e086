"""The records that this service publishes: the topic and the key of each."""

from collections.abc import Sequence

from shared.domain.messages import DeliveryDue, DeliveryExhausted, ResendRequested, encode
from shared.domain.topics import WEBHOOKS_DEAD, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after

_PUBLISH_TIMEOUT_S = 10


def publish(producer: ConfirmingProducer, records: Sequence[OutgoingRecord]) -> None:
    """Publish these records and return once Kafka has confirmed them all."""
    producer.send(records, on_wait=raise_after(_PUBLISH_TIMEOUT_S))


def to_deliver(due: DeliveryDue, trace: str | None = None) -> OutgoingRecord:
    return OutgoingRecord(WEBHOOKS_DELIVER.name, str(due.application_id), encode(due), trace)


def to_delay(due: DeliveryDue, trace: str | None = None) -> OutgoingRecord:
    """Return a record for the delay topic between the previous step and this one."""
    return OutgoingRecord(WEBHOOKS_DELAY[due.step - 2].name, str(due.application_id), encode(due), trace)


def to_requeue(
    due: DeliveryDue, due_in_s: float, retry_delays: Sequence[float], trace: str | None = None
) -> OutgoingRecord:
    """Return a record for webhooks.deliver if the delivery is due, else for the delay topic with the shortest
    sufficient delay: the records ahead of it there wait hardly longer than it has to."""
    if due_in_s <= 0:
        return to_deliver(due, trace)
    long_enough = [index for index, delay in enumerate(retry_delays) if delay >= due_in_s]
    topic = WEBHOOKS_DELAY[long_enough[0] if long_enough else -1]
    return OutgoingRecord(topic.name, str(due.application_id), encode(due), trace)


def to_slow(message: DeliveryDue | ResendRequested, trace: str | None = None) -> OutgoingRecord:
    return OutgoingRecord(WEBHOOKS_SLOW.name, str(message.application_id), encode(message), trace)


def to_dead(exhausted: DeliveryExhausted, trace: str | None = None) -> OutgoingRecord:
    return OutgoingRecord(WEBHOOKS_DEAD.name, str(exhausted.id), encode(exhausted), trace)

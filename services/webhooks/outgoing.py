"""Which record goes to which topic, under which key, and how long we wait until Kafka has it."""

from collections.abc import Sequence

from shared.domain.messages import DeliveryDue, DeliveryExhausted, ResendRequested, encode
from shared.domain.topics import WEBHOOKS_DEAD, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after

_PATIENCE_S = 10


def publish(producer: ConfirmingProducer, records: Sequence[OutgoingRecord]) -> None:
    """Returns once Kafka has them all."""
    producer.send(records, on_wait=raise_after(_PATIENCE_S))


def to_deliver(due: DeliveryDue, trace: str | None = None) -> OutgoingRecord:
    return OutgoingRecord(WEBHOOKS_DELIVER.name, str(due.application_id), encode(due), trace)


def to_delay(due: DeliveryDue, trace: str | None = None) -> OutgoingRecord:
    """To the topic whose wait lies between the last step and this one."""
    return OutgoingRecord(WEBHOOKS_DELAY[due.step - 2].name, str(due.application_id), encode(due), trace)


def to_requeue(
    due: DeliveryDue, due_in_s: float, retry_delays: Sequence[float], trace: str | None = None
) -> OutgoingRecord:
    """To the topic that is just slow enough: whoever is ahead there waits no longer than this one has to, or nearly."""
    if due_in_s <= 0:
        return to_deliver(due, trace)
    slow_enough = [step for step, delay in enumerate(retry_delays) if delay >= due_in_s]
    topic = WEBHOOKS_DELAY[slow_enough[0] if slow_enough else -1]
    return OutgoingRecord(topic.name, str(due.application_id), encode(due), trace)


def to_slow(message: DeliveryDue | ResendRequested, trace: str | None = None) -> OutgoingRecord:
    return OutgoingRecord(WEBHOOKS_SLOW.name, str(message.application_id), encode(message), trace)


def to_dead(exhausted: DeliveryExhausted, trace: str | None = None) -> OutgoingRecord:
    return OutgoingRecord(WEBHOOKS_DEAD.name, str(exhausted.id), encode(exhausted), trace)

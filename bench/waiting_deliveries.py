"""Creates deliveries that wait for a try: their rows, and their records in Kafka."""

from collections.abc import Callable, Sequence
from uuid import UUID

from bench.webhook_installation import WebhookInstallation
from services.webhooks.outgoing import to_delay, to_deliver
from shared.domain.messages import DeliveryDue
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after

_FILL = """
with made as (
    insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, tries, step,
                                    next_due_at)
    select uuidv7(), uuidv7(), a.id, 'payment_intent.canceled', a.webhook_url, a.webhook_secret_version,
           %(step)s - 1, %(step)s, mizan_now() + make_interval(secs => %(in_s)s + %(over_s)s::float8 * n / %(count)s)
    from generate_series(1, %(count)s) as n
    join applications as a on a.id = (%(applications)s::uuid[])[1 + n %% cardinality(%(applications)s::uuid[])]
    order by n
    returning id, application_id, next_due_at
)
select id, application_id, next_due_at from made order by next_due_at, id
"""
_KAFKA_TIMEOUT_S = 60


def fill_first_tries(
    installation: WebhookInstallation, applications: Sequence[UUID], count: int
) -> list[DeliveryDue]:
    """Create deliveries that are due now, on webhooks.deliver."""
    return _fill(installation, applications, count, step=1, to_topic=to_deliver)


def fill_retries(
    installation: WebhookInstallation,
    applications: Sequence[UUID],
    count: int,
    *,
    in_s: float = 0,
    over_s: float = 0,
) -> list[DeliveryDue]:
    """Create second tries on webhooks.delay.1, due at one moment or one after another."""
    return _fill(installation, applications, count, step=2, to_topic=to_delay, in_s=in_s, over_s=over_s)


def _fill(
    installation: WebhookInstallation,
    applications: Sequence[UUID],
    count: int,
    *,
    step: int,
    to_topic: Callable[[DeliveryDue], OutgoingRecord],
    in_s: float = 0,
    over_s: float = 0,
) -> list[DeliveryDue]:
    values = {
        "step": step,
        "in_s": in_s,
        "over_s": over_s,
        "count": count,
        "applications": list(applications),
    }
    rows = installation.connection.execute(_FILL.encode(), values).fetchall()
    assert len(rows) == count
    due = [
        DeliveryDue(delivery_id, application_id, step, due_at) for delivery_id, application_id, due_at in rows
    ]
    installation.connection.execute("checkpoint")
    producer = ConfirmingProducer(installation.kafka, "bench")
    producer.send([to_topic(one) for one in due], on_wait=raise_after(_KAFKA_TIMEOUT_S))
    producer.close()
    return due

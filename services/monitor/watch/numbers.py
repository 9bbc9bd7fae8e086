"""Which numbers of a look have a history, and under which names. Pure."""

from services.monitor.watch.figures import Figures
from services.monitor.watch.seen import KafkaSeen

OUTBOX_AGE = "outbox age"
PAID = "paid"
UNDER_WAY = "under way"
ATTEMPT_AGE = "attempt age"
PENDING = "pending"
CREATED = "created"


def lag_name(group: str) -> str:
    return f"lag of {group}"


def lag_s_name(group: str) -> str:
    return f"lag in seconds of {group}"


def into_name(topic: str) -> str:
    return f"into {topic}"


def out_name(topic: str) -> str:
    return f"out of {topic}"


def of_database(figures: Figures) -> dict[str, float]:
    return {
        OUTBOX_AGE: figures.outbox.oldest_s,
        PAID: figures.payments.paid_in_5_minutes,
        CREATED: figures.payments.created_in_a_minute,
        UNDER_WAY: sum(figures.attempts.under_way.values()),
        ATTEMPT_AGE: figures.attempts.oldest_s,
        PENDING: figures.deliveries.waiting,
    }


def of_kafka(seen: KafkaSeen) -> dict[str, float]:
    found: dict[str, float] = {}
    for group in seen.view.groups:
        found[lag_name(group.name)] = group.lag
        found[lag_s_name(group.name)] = group.lag_s
    for topic, flow in seen.flows.items():
        found[into_name(topic)] = flow.into
        if flow.out is not None:
            found[out_name(topic)] = flow.out
    return found

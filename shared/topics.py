"""Every topic, defined once. What exists in Kafka is held against this table at start."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

RETRY_STEPS = 8


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    retention: timedelta
    key: str
    """What its records are keyed by, so what stays in order."""
    group: str | None = None
    """Who consumes it; None where nobody does, but people look into it."""
    max_message_bytes: int = 1024 * 1024

    def config(self, replication_factor: int) -> Mapping[str, str]:
        return {
            "max.message.bytes": str(self.max_message_bytes),
            "cleanup.policy": "delete",
            "retention.ms": str(int(self.retention.total_seconds() * 1000)),
            # A write counts once a majority has it, and the loss of one broker stops nobody.
            "min.insync.replicas": str(replication_factor // 2 + 1 if replication_factor > 2 else 1),
            "unclean.leader.election.enable": "false",
        }


_WORK = timedelta(days=7)
_EVIDENCE = timedelta(days=30)

PAYMENT_INTENT_EVENTS = Topic("payment_intents.events", 6, _WORK, key="intent uuid", group="webhooks.intake")
WEBHOOKS_DELIVER = Topic("webhooks.deliver", 6, _WORK, key="application", group="webhooks.deliver")
WEBHOOKS_SLOW = Topic("webhooks.slow", 3, _WORK, key="application", group="webhooks.slow")
# Retention is well above the longest wait of 12 hours plus a long outage.
WEBHOOKS_DELAY = tuple(
    Topic(f"webhooks.delay.{step}", 2, _WORK, key="application", group=f"webhooks.delay.{step}")
    for step in range(1, RETRY_STEPS + 1)
)
WEBHOOKS_RESEND = Topic("webhooks.resend", 3, _WORK, key="delivery id", group="webhooks.resend")
WEBHOOKS_DEAD = Topic("webhooks.dead", 1, _EVIDENCE, key="delivery id")
CHECKOUT_VERIFY = Topic("checkout.verify", 3, _WORK, key="attempt id", group="checkout.verify")
# A letter holds its record in base64, and some more.
DEAD_LETTERS = Topic("dead_letters", 1, _EVIDENCE, key="origin topic", max_message_bytes=2 * 1024 * 1024)

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

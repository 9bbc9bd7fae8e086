"""Who may do what in Kafka: one principal for each service that uses it. Everything else is refused.

`mizan topics` creates these users and ACLs and compares a cluster with them; docs/security.md shows them as a table.
The API, the checkout and the dashboard have no principal: what they publish goes through the outbox.
"""

from shared.domain.topics import (
    ALL_TOPICS,
    CHECKOUT_VERIFY,
    DEAD_LETTERS,
    PAYMENT_INTENT_EVENTS,
    WEBHOOKS_DEAD,
    WEBHOOKS_DELAY,
    WEBHOOKS_DELIVER,
    WEBHOOKS_RESEND,
    WEBHOOKS_SLOW,
)
from shared.platform.kafka.access import Principal

_CONSUMED = tuple(topic for topic in ALL_TOPICS if topic.group is not None)
_GROUPS = tuple(topic.group for topic in ALL_TOPICS if topic.group is not None)

CHECKOUT_VERIFIER = Principal(
    "mizan-checkout-verifier",
    consumes=(CHECKOUT_VERIFY,),
    produces=(DEAD_LETTERS,),
)
WEBHOOKS = Principal(
    "mizan-webhooks",
    consumes=(PAYMENT_INTENT_EVENTS, WEBHOOKS_DELIVER, WEBHOOKS_SLOW, *WEBHOOKS_DELAY, WEBHOOKS_RESEND),
    produces=(WEBHOOKS_DELIVER, WEBHOOKS_SLOW, *WEBHOOKS_DELAY, WEBHOOKS_DEAD, DEAD_LETTERS),
)
# It publishes the outbox and replays dead letters to any topic that is consumed, and measures how far behind the
# consumers of events and deliveries are.
SCHEDULER = Principal(
    "mizan-scheduler",
    produces=_CONSUMED,
    reads=(*_CONSUMED, DEAD_LETTERS),
    inspects_groups=_GROUPS,
    checks=ALL_TOPICS,
)
# Operators look at every topic and group, and replay dead letters.
MONITOR = Principal("mizan-monitor", produces=_CONSUMED, reads=ALL_TOPICS, inspects_groups=_GROUPS)
CLI = Principal("mizan-cli", produces=_CONSUMED, reads=ALL_TOPICS, inspects_groups=_GROUPS)
ADMIN = Principal("mizan-admin", reads=ALL_TOPICS, checks=ALL_TOPICS, is_admin=True)

ALL_PRINCIPALS = (ADMIN, CHECKOUT_VERIFIER, WEBHOOKS, SCHEDULER, MONITOR, CLI)

"""What operators see of intents, beside the requests that every service counts."""

from prometheus_client import Counter

CREATED = Counter("mizan_intent_creations", "Payment intents created; a repeated create counts once")

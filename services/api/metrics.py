"""What operators see of intents, beside the requests that every service counts."""

from prometheus_client import Counter

CREATED = Counter("mizan_intents_made", "Payment intents created; a repeated create counts once")

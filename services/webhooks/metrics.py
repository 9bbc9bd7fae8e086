"""What operators see of the webhooks."""

from prometheus_client import Counter, Gauge, Histogram

TAKEN_IN = Counter("mizan_webhook_taken_in", "Deliveries put on their way for their first try")
TRIES = Counter(
    "mizan_webhook_tries",
    "Tries, by the step of the ladder (or resend) and how they went",
    ["step", "outcome"],
)
DELIVERED = Counter("mizan_webhook_delivered", "Deliveries that succeeded")
FAILED = Counter("mizan_webhook_failed", "Deliveries that ended as failed, and why", ["reason"])
RETRIED = Counter(
    "mizan_webhook_retried", "Deliveries that wait for another try, by the step that failed", ["step"]
)
BLOCKED = Counter("mizan_webhook_blocked", "Tries that were not sent because of their address")
PARKED = Counter("mizan_webhook_parked", "Deliveries parked because their application is paused")
OVERFLOWED = Counter("mizan_webhook_slow_lane", "Tries moved to the slow lane")
IN_FLIGHT = Gauge("mizan_webhook_in_flight", "Requests under way", ["lane"])
WAITING = Gauge("mizan_webhook_waiting", "Tries that wait for a place of their application", ["lane"])
TO_RECEIPT = Histogram(
    "mizan_webhook_event_to_receipt_seconds",
    "From the event to the receiver's yes, of deliveries that succeed at the first try",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
LATENESS = Histogram(
    "mizan_webhook_retry_late_seconds",
    "How late after its time a retry leaves its delay topic",
    ["step"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600, 3600),
)

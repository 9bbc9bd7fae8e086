"""Prometheus metrics of the webhook service."""

from prometheus_client import Counter, Gauge, Histogram

QUEUED = Counter("mizan_webhook_queued", "Deliveries created, and queued for their first try")
TRIES = Counter(
    "mizan_webhook_tries",
    "Tries, by step of the retry schedule (or resend) and outcome",
    ["step", "outcome"],
)
DELIVERED = Counter("mizan_webhook_delivered", "Deliveries that succeeded")
FAILED = Counter("mizan_webhook_failed", "Deliveries that ended as failed, by reason", ["reason"])
RETRIED = Counter(
    "mizan_webhook_retried", "Deliveries scheduled for another try, by the step that failed", ["step"]
)
BLOCKED = Counter("mizan_webhook_blocked", "Tries not sent because the address is not public")
NOT_THROUGH_PROXY = Counter(
    "mizan_webhook_proxy_failures",
    "Tries that did not get through the egress proxy, by its answer to CONNECT, or unreachable",
    ["reason"],
)
SET_ASIDE = Counter("mizan_webhook_set_aside", "Deliveries set aside because their application is paused")
MOVED_TO_SLOW = Counter("mizan_webhook_moved_to_slow", "Tries moved to the slow pipeline")
IN_FLIGHT = Gauge("mizan_webhook_in_flight", "Requests in flight", ["pipeline"])
WAITING = Gauge("mizan_webhook_waiting", "Tries waiting for a slot of their application", ["pipeline"])
EVENT_TO_RECEIPT = Histogram(
    "mizan_webhook_event_to_receipt_seconds",
    "Time from the event to the 2xx response, for deliveries that succeed at the first try",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)
RETRY_LATENESS = Histogram(
    "mizan_webhook_retry_late_seconds",
    "How late a retry leaves its delay topic",
    ["step"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600, 3600),
)

"""Prometheus metrics of payments and providers."""

from collections.abc import Iterable

from prometheus_client import Counter, Histogram

from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.states import CHARGED, AttemptState
from shared.domain.payment_methods import PaymentMethod

ATTEMPTS_STARTED = Counter(
    "mizan_attempts_started", "Payment attempts started by customers", ["method", "provider"]
)
ATTEMPTS_SETTLED = Counter(
    "mizan_attempts_settled",
    "Payment attempts by outcome. An attempt with an unknown outcome is counted again once the outcome is known",
    ["method", "provider", "outcome"],
)
SENT_TO_SETTLED = Histogram(
    "mizan_attempt_sent_to_settled_seconds",
    "Time from the request that may charge the customer to a final outcome",
    ["method", "provider"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 300, 1800, 3600, 21600, 86400),
)
PROVIDER_CALLS = Histogram(
    "mizan_provider_request_duration_seconds",
    "Duration of requests to a provider, answered or not",
    ["provider", "operation", "outcome"],
    buckets=(0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 40),
)
PROVIDER_NOTIFICATIONS = Counter(
    "mizan_provider_notifications",
    "Notifications, returns and callbacks sent by providers",
    ["provider", "result"],
)

_ENDED = CHARGED | {AttemptState.DECLINED}
_OUTCOMES = _ENDED | {AttemptState.ABANDONED, AttemptState.UNKNOWN}


def count_settled(settled: SettlementResult, method: PaymentMethod, provider: str) -> SettlementResult:
    """Count a settlement that reached an outcome. Call it after the commit.

    Settlements that changed nothing or wait for the customer are not counted.
    """
    if settled.is_new and settled.attempt in _OUTCOMES:
        ATTEMPTS_SETTLED.labels(method, provider, settled.attempt).inc()
        if settled.attempt in _ENDED and settled.since_sent_s is not None:
            SENT_TO_SETTLED.labels(method, provider).observe(settled.since_sent_s)
    return settled


def initialize_series(providers: Iterable[str]) -> None:
    """Create all series at 0, because Prometheus misses the first increment of a new series."""
    for provider in providers:
        PROVIDER_NOTIFICATIONS.labels(provider, "refused")
        for method in PaymentMethod:
            ATTEMPTS_STARTED.labels(method, provider)
            for outcome in _OUTCOMES:
                ATTEMPTS_SETTLED.labels(method, provider, outcome)

"""Latency of webhooks at a moderate rate, from the event to its receipt."""

from collections.abc import Iterable
from statistics import median

from bench.due_intents import fill_due
from bench.figures import Figure, percentile
from bench.receiver import receiver
from bench.webhook_installation import webhook_installation
from bench.world import World

PER_S = 50
OVER_S = 20.0
WARM_UP = 50
TIMEOUT_S = 30.0


def measure(world: World) -> Iterable[Figure]:
    count = int(PER_S * OVER_S)
    with receiver() as endpoint, webhook_installation(world) as installation:
        application = installation.application(endpoint)
        with installation.scheduler(), installation.webhooks():
            fill_due(installation.connection, "warm-up-", in_s=1, count=WARM_UP, applications=[application])
            endpoint.wait_for(WARM_UP, TIMEOUT_S)
            endpoint.take()
            fill_due(
                installation.connection,
                "paced-",
                in_s=2,
                over_s=OVER_S,
                count=count,
                applications=[application],
            )
            endpoint.wait_for(count, OVER_S + TIMEOUT_S)
            installation.wait_recorded()
        installation.check_recorded_once([application], WARM_UP + count)
        receipts = endpoint.take()
    receipts.check_once_each(count)
    latencies = receipts.latencies_ms()
    yield Figure(
        "webhook_latency_p50_ms",
        median(latencies),
        f"from an event to its receipt, {PER_S} expiries a second",
    )
    yield Figure("webhook_latency_p99_ms", percentile(latencies, 0.99), "the same, 99th percentile")

"""Lateness of retries, from their due time to their receipt. None may be early."""

from collections.abc import Iterable
from uuid import UUID

from bench.figures import Figure, percentile
from bench.receiver import Receiver, receiver
from bench.waiting_deliveries import fill_retries
from bench.webhook_installation import WebhookInstallation, webhook_installation
from bench.world import World

COUNT = 10_000
APPLICATIONS = 10
SPREAD_S = 10.0
DUE_IN_S = 5.0
WARM_UP = 50
TIMEOUT_S = 60.0


def measure(world: World) -> Iterable[Figure]:
    with receiver() as endpoint, webhook_installation(world) as installation:
        applications = [installation.application(endpoint) for _ in range(APPLICATIONS)]
        with installation.webhooks():
            _lateness(installation, endpoint, applications, WARM_UP, over_s=1)
            spread = _lateness(installation, endpoint, applications, COUNT, over_s=SPREAD_S)
            burst = _lateness(installation, endpoint, applications, COUNT, over_s=0)
            installation.wait_recorded()
        installation.check_recorded_once(applications, WARM_UP + 2 * COUNT)
    yield Figure(
        "retry_lateness_p99_s",
        percentile(spread, 0.99),
        f"from a retry's due time to its receipt, {COUNT:,} over {SPREAD_S:.0f} s; none was early",
    )
    yield Figure(
        "retry_burst_lateness_p99_s", percentile(burst, 0.99), f"the same, {COUNT:,} due at one moment"
    )


def _lateness(
    installation: WebhookInstallation,
    endpoint: Receiver,
    applications: list[UUID],
    count: int,
    *,
    over_s: float,
) -> list[float]:
    due = fill_retries(installation, applications, count, in_s=DUE_IN_S, over_s=over_s)
    endpoint.wait_for(count, DUE_IN_S + over_s + TIMEOUT_S)
    receipts = endpoint.take()
    receipts.check_once_each(count)
    due_at = {str(one.id): one.due_at.timestamp() for one in due}
    lateness = [at - due_at[delivery_id] for delivery_id, at in zip(receipts.ids, receipts.at, strict=True)]
    assert min(lateness) >= 0, f"a retry was early by {-min(lateness):.3f} s"
    return lateness

"""What one application's hanging endpoint does to the others: their slowest webhooks, with it and without it."""

from collections.abc import Iterable
from statistics import median

from bench.due_intents import fill_due
from bench.endpoint import Receipts
from bench.figures import Figure, percentile, ratio
from bench.receiver import Receiver, receiver
from bench.webhook_installation import WebhookInstallation, webhook_installation
from bench.world import World

OTHERS = 5
PER_S = 80
"""Of all others together."""
OVER_S = 25.0
"""More than twice the limit of 10 s: the hanging endpoint is met, found to hang, and probed again."""
ARRIVED_S = 5.0
"""By then the hanging one's events have arrived, and wait."""
HANGING = 5_000
ROUNDS = 2
WARM_UP = 50
DUE_IN_S = 2.0
PATIENCE_S = 30.0

_TRIES = """
select count(*) filter (where failure = 'timeout'), count(*)
from webhook_tries where delivery_id in (select id from webhook_deliveries where application_id = %s)
"""


def measure(world: World) -> Iterable[Figure]:
    without, beside = [], []
    with receiver() as endpoint:
        for _ in range(ROUNDS):
            with webhook_installation(world) as installation:
                without.append(_others_receipts(installation, endpoint, hanging=0))
            # Anew: what hangs goes on for a day.
            with webhook_installation(world) as installation:
                beside.append(_others_receipts(installation, endpoint, hanging=HANGING))
    p99_without, p99_beside = [_p99_ms(one) for one in without], [_p99_ms(one) for one in beside]
    yield Figure(
        "noisy_neighbour_p99_ratio",
        ratio([_p99_ms(one, ARRIVED_S) for one in beside], [_p99_ms(one, ARRIVED_S) for one in without]),
        f"others' time from event to receipt while {HANGING:,} events of one that hangs wait, over without",
    )
    yield Figure(
        "noisy_arrival_p99_ratio",
        ratio(p99_beside, p99_without),
        "the same, with the seconds in which these expire and arrive, all at one moment",
    )
    yield Figure("others_p99_ms", median(p99_without), f"{OTHERS} applications with {PER_S} events a second")
    yield Figure("others_p99_ms_beside_hanging", median(p99_beside), f"beside {HANGING:,} of one that hangs")


def _p99_ms(receipts: Receipts, after_s: float = 0) -> float:
    return percentile(receipts.latencies_ms(after_s), 0.99)


def _others_receipts(installation: WebhookInstallation, endpoint: Receiver, *, hanging: int) -> Receipts:
    others = [installation.application(endpoint) for _ in range(OTHERS)]
    noisy = installation.application(endpoint, is_silent=True)
    count = int(PER_S * OVER_S)
    with installation.scheduler(), installation.webhooks():
        fill_due(installation.connection, "warm-up-", in_s=1, count=WARM_UP, applications=others)
        endpoint.wait_for(WARM_UP, PATIENCE_S)
        endpoint.take()
        fill_due(
            installation.connection, "others-", in_s=DUE_IN_S, over_s=OVER_S, count=count, applications=others
        )
        if hanging:
            fill_due(installation.connection, "noisy-", in_s=DUE_IN_S, count=hanging, applications=[noisy])
        endpoint.wait_for(count, OVER_S + PATIENCE_S)
    receipts = endpoint.take()
    receipts.check_once_each(count)
    installation.check_recorded_once(others, WARM_UP + count)
    if hanging:
        timed_out, tried = installation.row(_TRIES, (noisy,))
        assert timed_out == tried > 0, f"{timed_out} of {tried} tries hung"
    return receipts

"""Isolation: the p99 latency of other applications' webhooks, with and without one application whose endpoint hangs."""

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
"""Events per second of all other applications together."""
OVER_S = 25.0
"""More than twice the limit of 10 s, so the hanging endpoint is tried, found to hang, and tried again."""
ARRIVED_S = 5.0
"""After that time the events of the hanging application have arrived, and wait."""
HANGING = 5_000
ROUNDS = 2
WARM_UP = 50
DUE_IN_S = 2.0
TIMEOUT_S = 30.0

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
            # A new installation each time: the retries of the hanging endpoint go on for a day.
            with webhook_installation(world) as installation:
                beside.append(_others_receipts(installation, endpoint, hanging=HANGING))
    p99_without, p99_beside = [_p99_ms(one) for one in without], [_p99_ms(one) for one in beside]
    yield Figure(
        "noisy_neighbour_p99_ratio",
        ratio([_p99_ms(one, ARRIVED_S) for one in beside], [_p99_ms(one, ARRIVED_S) for one in without]),
        f"others' p99 from event to receipt while {HANGING:,} events of a hanging endpoint wait, over without",
    )
    yield Figure(
        "noisy_arrival_p99_ratio",
        ratio(p99_beside, p99_without),
        "the same, including the seconds in which these events expire and arrive, all at once",
    )
    yield Figure("others_p99_ms", median(p99_without), f"{OTHERS} applications with {PER_S} events a second")
    yield Figure(
        "others_p99_ms_beside_hanging",
        median(p99_beside),
        f"the same, beside {HANGING:,} events of a hanging endpoint",
    )


def _p99_ms(receipts: Receipts, after_s: float = 0) -> float:
    return percentile(receipts.latencies_ms(after_s), 0.99)


def _others_receipts(installation: WebhookInstallation, endpoint: Receiver, *, hanging: int) -> Receipts:
    others = [installation.application(endpoint) for _ in range(OTHERS)]
    noisy = installation.application(endpoint, is_silent=True)
    count = int(PER_S * OVER_S)
    with installation.scheduler(), installation.webhooks():
        fill_due(installation.connection, "warm-up-", in_s=1, count=WARM_UP, applications=others)
        endpoint.wait_for(WARM_UP, TIMEOUT_S)
        endpoint.take()
        fill_due(
            installation.connection, "others-", in_s=DUE_IN_S, over_s=OVER_S, count=count, applications=others
        )
        if hanging:
            fill_due(installation.connection, "noisy-", in_s=DUE_IN_S, count=hanging, applications=[noisy])
        endpoint.wait_for(count, OVER_S + TIMEOUT_S)
    receipts = endpoint.take()
    receipts.check_once_each(count)
    installation.check_recorded_once(others, WARM_UP + count)
    if hanging:
        timed_out, tried = installation.row(_TRIES, (noisy,))
        assert timed_out == tried > 0, f"{timed_out} of {tried} tries hung"
    return receipts

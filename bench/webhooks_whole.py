"""Throughput and processor time of webhooks end to end, from the expiry of an intent to the record of the receipt."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from time import sleep, time
from uuid import UUID

from bench.due_intents import fill_due
from bench.figures import Figure, ratio
from bench.receiver import Receiver, receiver
from bench.resources import cpu_seconds
from bench.webhook_installation import WebhookInstallation, webhook_installation
from bench.webhooks import bare_per_s
from bench.world import World

COUNT = 20_000
WARM_UP = 500
ROUNDS = 3
DUE_IN_S = 4.0
TIMEOUT_S = 60.0

_DUE_AT = (
    "select extract(epoch from min(expires_at))::float8 from payment_intents where starts_with(reference, %s)"
)


@dataclass(frozen=True, slots=True)
class Wave:
    seconds: float
    """From the moment all intents fell due until the last webhook was recorded."""
    cpu_s: dict[str, float]
    """Processor time used meanwhile, by program."""


def measure(world: World) -> Iterable[Figure]:
    with receiver() as endpoint, webhook_installation(world) as installation:
        application = installation.application(endpoint)
        with installation.scheduler() as scheduler, installation.webhooks() as webhooks:
            programs = {**world.engine_pids(), "scheduler": scheduler.pid, "webhooks": webhooks.pid}
            _wave(installation, endpoint, application, programs, WARM_UP)
            bare, waves = [], []
            for _ in range(ROUNDS):
                bare.append(bare_per_s(endpoint))
                waves.append(_wave(installation, endpoint, application, programs, COUNT))
        installation.check_recorded_once([application], WARM_UP + ROUNDS * COUNT)
    rates = [COUNT / wave.seconds for wave in waves]
    yield Figure(
        "webhook_whole_vs_bare_curl",
        ratio(rates, bare),
        "webhooks/s from expiry to record, of the same posts by libcurl alone",
    )
    yield Figure(
        "webhook_per_s", median(rates), f"from expiry to record, {COUNT:,} intents due at one moment"
    )
    yield Figure(
        "webhook_cpu_ms_per_1000",
        1e6 * median(sum(wave.cpu_s.values()) for wave in waves) / COUNT,
        "processor time of all programs but the receiver, per 1,000 webhooks",
    )
    for program in programs:
        cpu_s = median(wave.cpu_s[program] for wave in waves)
        yield Figure(
            f"webhook_cpu_us_{program}", 1e6 * cpu_s / COUNT, f"{program}'s share of it, per webhook"
        )


def _wave(
    installation: WebhookInstallation,
    endpoint: Receiver,
    application: UUID,
    programs: dict[str, int],
    count: int,
) -> Wave:
    prefix = f"{time()}-"
    fill_due(installation.connection, prefix, in_s=DUE_IN_S, count=count, applications=[application])
    (due_at,) = installation.row(_DUE_AT, (prefix,))
    sleep(due_at - time())
    before = cpu_seconds(programs)
    endpoint.wait_for(count, TIMEOUT_S)
    recorded_at = installation.wait_recorded()
    after = cpu_seconds(programs)
    endpoint.take().check_once_each(count)
    return Wave(recorded_at - due_at, {program: after[program] - before[program] for program in programs})

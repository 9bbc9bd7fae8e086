"""How long webhooks are late if the only webhook service is killed (`kill -9`) and started again, twice."""

import os
from collections.abc import Iterable
from signal import SIGKILL
from time import monotonic, sleep
from uuid import UUID

from bench.figures import Figure
from bench.receiver import Receiver, receiver
from bench.waiting_deliveries import fill_first_tries
from bench.webhook_installation import WebhookInstallation, webhook_installation
from bench.world import World

KILLS = 2
PER_START = 500
COUNT = (KILLS + 1) * PER_START
TIMEOUT_S = 120.0


def measure(world: World) -> Iterable[Figure]:
    with receiver() as endpoint, webhook_installation(world) as installation:
        application = installation.application(endpoint)
        seconds = _deliver(installation, endpoint, application)
        installation.wait_recorded()
    yield Figure(
        "webhooks_after_two_kills_s",
        seconds,
        f"until the last of {COUNT:,} webhooks is received, while the only service is killed twice",
    )


def _deliver(installation: WebhookInstallation, endpoint: Receiver, application: UUID) -> float:
    """Return the seconds from the first delivery to the last receipt. Some are received twice, none is lost."""
    ids: set[str] = set()
    with installation.webhooks() as service:
        began = monotonic()
        fill_first_tries(installation, [application], PER_START)
        endpoint.wait_for(1, TIMEOUT_S)
        os.kill(service.pid, SIGKILL)
    for _ in range(KILLS - 1):
        fill_first_tries(installation, [application], PER_START)
        ids.update(endpoint.take().ids)
        with installation.webhooks() as service:
            endpoint.wait_for(1, TIMEOUT_S)
            os.kill(service.pid, SIGKILL)
    fill_first_tries(installation, [application], PER_START)
    with installation.webhooks():
        while len(ids) < COUNT:
            assert monotonic() < began + TIMEOUT_S, f"only {len(ids)} of {COUNT} webhooks arrived"
            sleep(0.05)
            ids.update(endpoint.take().ids)
        return monotonic() - began

"""Peak memory of the webhook service, with a backlog far bigger than what it works on at once."""

from collections.abc import Iterable
from pathlib import Path

from bench.figures import Figure
from bench.receiver import receiver
from bench.waiting_deliveries import fill_first_tries
from bench.webhook_installation import webhook_installation
from bench.world import World

WAITING = 100_000
ENOUGH = 40_000
"""The peak is reached early, because the service holds a limited number of deliveries at a time."""
TIMEOUT_S = 60.0


def measure(world: World) -> Iterable[Figure]:
    with receiver() as endpoint, webhook_installation(world) as installation:
        application = installation.application(endpoint)
        fill_first_tries(installation, [application], WAITING)
        with installation.webhooks() as service:
            endpoint.wait_for(ENOUGH, TIMEOUT_S)
            peak_mb = _peak_mb(service.pid)
    yield Figure(
        "webhook_worker_memory_mb",
        peak_mb,
        f"peak resident memory of the webhook service, {WAITING:,} deliveries waiting",
    )


def _peak_mb(pid: int) -> float:
    """Return the peak that the kernel recorded. Sampling would miss a short peak."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return round(int(value.split()[0]) / 1024, 1)
    raise AssertionError(f"the kernel reports no peak memory for process {pid}")

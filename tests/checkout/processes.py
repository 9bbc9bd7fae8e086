"""The checkout as real processes, at the address of the test environment."""

from dataclasses import replace
from pathlib import Path

from shared.platform.settings import PublicUrls
from tests.checkout.world import CheckoutWorld
from tests.sandbox.running_sandbox import SECRET
from tests.servers import ServiceProcess


def checkout_processes(world: CheckoutWorld, root: Path, metrics: Path, **environment: str) -> ServiceProcess:
    service = ServiceProcess(
        "services.checkout",
        root,
        world.settings.database,
        world.settings.kafka,
        MIZAN_SECRET_KEYS=",".join(world.settings.secret_keys),
        SANDBOX_URL=world.bank.url,
        SANDBOX_SECRET=SECRET,
        PROMETHEUS_MULTIPROC_DIR=str(metrics),
        **environment,
    )
    world.url = f"http://127.0.0.1:{service.port}"
    urls = PublicUrls(api=world.settings.public_urls.api, checkout=world.url)
    world.settings = replace(world.settings, public_urls=urls)
    return service

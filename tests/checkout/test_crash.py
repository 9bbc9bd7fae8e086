"""The checkout is killed between the provider's yes and our commit: the verifier finds it, nobody pays twice."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psutil
import requests

from shared.settings import PublicUrls
from tests.checkout.test_paying import PAID, PROCESSING
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock
from tests.running_service import Service
from tests.sandbox.running_sandbox import SECRET, kill
from tests.waiting import eventually


def _checkout(world: CheckoutWorld, root: Path, metrics: Path) -> Service:
    """As the processes it is, at the world's address."""
    service = Service(
        "services.checkout",
        root,
        world.settings.database,
        world.settings.kafka,
        MIZAN_SECRET_KEYS=",".join(world.settings.secret_keys),
        SANDBOX_URL=f"http://127.0.0.1:{world.bank.port}",
        SANDBOX_SECRET=SECRET,
        PROMETHEUS_MULTIPROC_DIR=str(metrics),
    )
    world.url = f"http://127.0.0.1:{service.port}"
    world.settings = replace(
        world.settings, public_urls=PublicUrls(api=world.settings.public_urls.api, checkout=world.url)
    )
    return service


def test_kill_9_between_the_banks_yes_and_our_commit(
    world: CheckoutWorld, repository_root: Path, tmp_path: Path
) -> None:
    service = _checkout(world, repository_root, tmp_path)
    intent = world.make_intent()
    with service.running() as process, ThreadPoolExecutor(1) as pool:
        eventually(lambda: service.status() == 200)
        customer = world.customer(intent)
        paying = pool.submit(customer.pay_by_card, "4000000000000077")
        eventually(lambda: world.charges(intent))
        kill(process)
        with suppress(requests.ConnectionError):
            paying.result()
    assert world.attempts(intent) == [("sent", None)]
    assert world.status(intent) == "processing"
    with service.running():
        eventually(lambda: service.status() == 200)
        second_tab = world.customer(intent)
        assert second_tab.title == PROCESSING
        Clock(world.database).advance(timedelta(seconds=26))
        with world.verifying():
            eventually(lambda: world.status(intent) == "succeeded")
        second_tab.open()
        assert second_tab.title == PAID
    assert world.attempts(intent) == [("paid", None)]
    assert [charge["status"] for charge in world.charges(intent)] == ["paid"]
    assert world.events(intent) == ["created", "processing", "succeeded"]


def test_sigterm_lets_a_payment_finish(world: CheckoutWorld, repository_root: Path, tmp_path: Path) -> None:
    """A deployment in the middle of a payment: the customer gets the answer."""
    service = _checkout(world, repository_root, tmp_path)
    intent = world.make_intent()
    with service.running() as process, ThreadPoolExecutor(1) as pool:
        eventually(lambda: service.status() == 200)
        customer = world.customer(intent)
        paying = pool.submit(customer.pay_by_card, "4000000000000077")
        eventually(lambda: world.charges(intent))
        psutil.Process(process.pid).send_signal(signal.SIGTERM)
        # The page it leads to is served by whoever comes next: nobody listens here any more.
        with suppress(requests.ConnectionError):
            paying.result()
        process.wait(30)
    assert world.attempts(intent) == [("paid", None)]

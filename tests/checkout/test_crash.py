"""The checkout is killed between the provider's confirmation and our commit: the verifier settles the attempt."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from shared.domain.intents.intent import Intent
from tests.checkout.processes import checkout_processes
from tests.checkout.test_payments import PAID, PROCESSING
from tests.checkout.world import CheckoutWorld
from tests.clock import Clock
from tests.sandbox.running_sandbox import kill
from tests.servers import ServiceProcess
from tests.waiting import eventually

pytestmark = pytest.mark.stack


@contextmanager
def payment_in_the_middle(
    world: CheckoutWorld, service: ServiceProcess, intent: Intent
) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield while the bank has charged but not responded. Then the customer has a response, or none."""
    with service.running() as process, ThreadPoolExecutor(1) as pool:
        eventually(lambda: service.status() == 200)
        customer = world.customer(intent)
        paying = pool.submit(customer.pay_by_card, "4000000000000077")
        eventually(lambda: world.charges(intent))
        yield process
        # The redirect after a payment fails, because no process listens any more.
        with suppress(requests.ConnectionError):
            paying.result()
        process.wait(30)


@pytest.mark.kills
def test_payment_is_settled_after_kill_9_before_the_commit(
    world: CheckoutWorld, repository_root: Path, tmp_path: Path
) -> None:
    service = checkout_processes(world, repository_root, tmp_path)
    intent = world.make_intent()
    with payment_in_the_middle(world, service, intent) as process:
        kill(process)
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


def test_sigterm_waits_for_a_payment_in_progress(
    world: CheckoutWorld, repository_root: Path, tmp_path: Path
) -> None:
    """A deployment during a payment: the customer gets the response."""
    service = checkout_processes(world, repository_root, tmp_path)
    intent = world.make_intent()
    with payment_in_the_middle(world, service, intent) as process:
        process.terminate()
    assert world.attempts(intent) == [("paid", None)]

"""An incident handled in a real browser, on a real stack: every service is a process, as in `make run`."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Locator, expect

from shared.domain.topics import WEBHOOKS_DELIVER
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after
from shared.platform.settings import DatabaseSettings, KafkaSettings
from tests.browser import Visitors
from tests.engines import TestEngines
from tests.monitor.browser.operator_browser import OperatorBrowser, OperatorBrowsers
from tests.stack.running_stack import RunningStack, whole_stack
from tests.stack_payments import BEING_CONFIRMED, SILENT_CARD, StackPayments
from tests.waiting import eventually
from tests.webhooks.receivers import Receiver

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.kills]

NOT_OURS = b"\xff<script>document.title = 'hacked'</script>"
SEAL = "update webhook_secrets set encrypted_secret = %s where application_id = %s"
WITHOUT_STATUS_CALL = "update payment_attempts set provider = 'plutu' where intent_uuid = %s"
READ_SEAL = "select encrypted_secret from webhook_secrets where application_id = %s"
CONSUMED = "payment_intents.events"
RED = re.compile(r"\bbad\b")
SOON_MS = 45_000
"""A silent member leaves its group after 6 s, and polls are 5 s apart."""
LATE_MS = 90_000
"""Lag is late after a minute."""


@pytest.fixture
def stack(
    tmp_path: Path, engines: TestEngines, database_settings: DatabaseSettings, kafka_settings: KafkaSettings
) -> Iterator[RunningStack]:
    places = engines, database_settings.url, kafka_settings.topic_prefix
    with whole_stack(tmp_path / "stack", *places, PROVIDER_TIMEOUT="2") as running:
        yield running


@dataclass(frozen=True)
class Shop:
    """An application, its customers, and the webhooks that it receives."""

    payments: StackPayments
    receiver: Receiver
    made: dict[str, str]

    def sell(self, **how: str) -> str:
        """Create an intent, pay it, and return its uuid."""
        intent = self.payments.create_intent(self.made["api_key"], self.made["access_token"])
        self.payments.pay(intent, **how)
        return intent["uuid"]

    def told_of(self, intent: str) -> int:
        """Return how many webhooks for this intent have arrived."""
        return sum(intent.encode() in request.body for request in self.receiver.requests)

    def hears_of(self, intent: str) -> None:
        eventually(lambda: self.told_of(intent))


@contextmanager
def frozen(stack: RunningStack, service: str) -> Iterator[None]:
    """Stop the process of a service with SIGSTOP until the block ends."""
    pid = stack.read()["pids"][service]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.timeout(300)
def test_operators_see_and_resolve_an_incident_in_the_monitor(
    stack: RunningStack,
    visitors: Visitors,
    database_settings: DatabaseSettings,
    kafka_settings: KafkaSettings,
) -> None:
    facts = stack.read()
    operator = OperatorBrowsers(facts["monitor_url"], visitors).come()
    operator.sign_in(facts["demo"]["operator_email"], facts["demo"]["operator_password"])
    with Receiver() as receiver:
        payments = StackPayments(facts["api_base_url"], visitors)
        coffee, books = (
            Shop(payments, receiver, _make(stack, name, receiver)) for name in ("Coffee", "Books")
        )
        coffee.hears_of(coffee.sell())
        _all_is_well(operator)
        operator.link("Topics and consumers").click()
        eventually(lambda: _lag(operator.consumer(CONSUMED)) == 0, every=0.2)
        with frozen(stack, "webhooks"):
            sold = _sell_while_nobody_consumes(operator, coffee)
            decided = _decide_what_is_stuck(operator, stack, coffee)
            operator.link("Topics and consumers").click()
            expect(operator.consumer(CONSUMED).locator(".late")).to_be_visible(timeout=LATE_MS)
            assert [coffee.told_of(one) for one in (*sold, decided)] == [0, 0, 0]
        expect(operator.consumer(CONSUMED).locator(".badge")).to_have_text("Healthy", timeout=SOON_MS)
        for one in (*sold, decided):
            coffee.hears_of(one)
        _all_is_well(operator)
        assert coffee.told_of(decided) == 1, "the verifier, back again, finds it decided"
        _records_nobody_can_process(operator, books, kafka_settings, database_settings.url)
    operator.link("Log").click()
    operator.reads("Decided a payment attempt")
    operator.reads("Their list has it as paid")
    operator.reads("Replayed a dead letter")


def _make(stack: RunningStack, name: str, receiver: Receiver) -> dict[str, str]:
    return stack.mizan(
        "app", "create", "--name", name, "--merchant", name, "--webhook-url", receiver.url, "--json"
    )


def _all_is_well(operator: OperatorBrowser) -> None:
    """Check the overview without reloading it: the page updates itself."""
    operator.link("Overview").click()
    operator.sees("Overview")
    for question, answer in (("payments", "Yes"), ("webhooks", "Yes"), ("stuck", "No")):
        expect(operator.answer(question).get_by_role("strong")).to_have_text(answer, timeout=SOON_MS)
    expect(operator.main).not_to_contain_text("What is wrong", timeout=SOON_MS)


def _sell_while_nobody_consumes(operator: OperatorBrowser, shop: Shop) -> list[str]:
    """Sell twice while the webhook service is frozen. The lag grows and turns red without a reload."""
    operator.link("Topics and consumers").click()
    row = operator.consumer(CONSUMED)
    sold = [shop.sell()]
    first = eventually(lambda: _lag(row), within=30, every=0.2)
    sold.append(shop.sell())
    eventually(lambda: _lag(row) > first, within=30, every=0.2)
    expect(row.locator(".badge")).to_have_text("No consumers", timeout=SOON_MS)
    expect(row.locator(".badge")).to_have_class(RED)
    operator.link("Overview").click()
    expect(operator.answer("webhooks")).to_contain_text("In trouble", timeout=SOON_MS)
    expect(operator.answer("webhooks")).to_have_class(RED)
    operator.reads("The service webhooks is down.")
    operator.problem("webhooks.intake").click()
    operator.sees(CONSUMED)
    return sold


def _lag(row: Locator) -> int:
    return int(row.get_by_role("cell").nth(2).inner_text())


def _decide_what_is_stuck(operator: OperatorBrowser, stack: RunningStack, shop: Shop) -> str:
    """Decide an attempt whose provider did not respond and does not support status inquiries."""
    with frozen(stack, "checkout-verifier"):
        sold = shop.sell(card=SILENT_CARD, outcome=BEING_CONFIRMED)
        operator.link("Overview").click()
        figure = operator.main.locator(".figure", has_text="Attempts in progress")
        expect(figure).to_contain_text("oldest:", timeout=SOON_MS)
        operator.link("Attempts in progress").click()
        operator.sees("Payment attempts")
        operator.main.get_by_role("rowheader").get_by_role("link").click()
        operator.reads("A decision needs the provider's answer of the last ten minutes.")
        with psycopg.connect(stack.read()["database_url"], autocommit=True) as connection:
            connection.execute(WITHOUT_STATUS_CALL, (sold,))
        operator.page.reload()
        operator.reads("Decide the outcome")
        operator.page.get_by_role("radio", name="It was paid", exact=True).check()
        operator.field("Provider's reference, if it was paid").fill("TRX-88120394")
        operator.field("How do you know?").fill("Their list has it as paid")
        operator.confirm("Decide")
        operator.reads("Decided: it was paid. The merchant is notified by webhook.")
    return sold


def _records_nobody_can_process(
    operator: OperatorBrowser, shop: Shop, kafka: KafkaSettings, database_url: str
) -> None:
    """Find two dead letters: a malformed record, and a delivery whose secret cannot be decrypted at first."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        seal = _spoil_secret(connection, shop.made["application_id"])
        _put_nonsense(kafka)
        sold = shop.sell()
        operator.problem("2 records could not be processed").click(timeout=SOON_MS)
        operator.sees("Dead letters")
        delivery = operator.main.get_by_role("row", name="DecryptionError")
        operator.main.get_by_role("rowheader").get_by_role("link").last.click()
        operator.sees("Dead letter")
        operator.link("All dead letters").click()
        delivery.get_by_role("link").click()
        expect(operator.main.get_by_role("region", name="Value")).to_contain_text(shop.made["application_id"])
        assert shop.told_of(sold) == 0
        connection.execute(SEAL, (seal, shop.made["application_id"]))
    operator.confirm("Replay")
    operator.reads("The record was written back to its topic and will be processed again.")
    shop.hears_of(sold)
    expect(operator.button("Replay")).to_have_count(0)
    assert "hacked" not in operator.page.title()


def _spoil_secret(connection: "psycopg.Connection[Any]", application_id: str) -> str:
    row = connection.execute(READ_SEAL, (application_id,)).fetchone()
    assert row is not None
    connection.execute(SEAL, ("not to be opened", application_id))
    return str(row[0])


def _put_nonsense(kafka: KafkaSettings) -> None:
    producer = ConfirmingProducer(kafka, "test")
    producer.send([OutgoingRecord(WEBHOOKS_DELIVER.name, b"nobody", NOT_OURS)], on_wait=raise_after(30))
    producer.close()

"""PostgreSQL is backed up while it runs, lost, and restored to a point in time. Kafka is empty then."""

import json
from pathlib import Path
from time import monotonic, time
from uuid import uuid4

import pytest
import requests

from shared.platform.tokens import sandbox_authorization
from stack.database_roles import urls_with_passwords
from stack.ports import find_free_ports
from tests.checkout.customer import Customer
from tests.database_roles import password_of
from tests.engines import TestEngines
from tests.stack.running_stack import RunningStack, whole_stack
from tests.stores.kafka_clusters import losable_kafka
from tests.stores.load import PAID, Load, WebhookInbox
from tests.stores.postgres_servers import ARCHIVING, PostgresServer, restore, server_directory
from tests.stores.settled_stack import SLOW_RETRIES, advance_clock, audit, run_mizan, wait_settled
from tests.waiting import eventually
from tests.webhooks.receivers import Receiver

pytestmark = [pytest.mark.stack, pytest.mark.kills, pytest.mark.timeout(600)]

SETTINGS = {"WEBHOOK_RETRY_DELAYS": SLOW_RETRIES, "PROVIDER_TIMEOUT": "2"}
FIRST_ID = "00000000-0000-0000-0000-000000000000"


def test_restored_database_has_what_was_acknowledged_before_the_point_in_time(
    engines: TestEngines, tmp_path: Path
) -> None:
    """Pending webhooks go out, attempts under way are settled, and `mizan audit` names each later charge."""
    prefix, inbox = f"t{uuid4().hex[:8]}.", WebhookInbox()
    before_port, after_port = find_free_ports(2)
    with server_directory() as (directory, watchdog), Receiver(inbox) as receiver:
        server = PostgresServer(directory / "server", before_port, watchdog, **ARCHIVING)
        server.start()
        server.prepare_roles()
        with whole_stack(tmp_path / "stack", engines, server.url, prefix, **SETTINGS) as stack:
            application = stack.mizan(
                "app", "create", "--name", "Shop", "--webhook-url", receiver.url, "--json"
            )
            with Load(stack.read()["api_base_url"], application, customers=2) as load:
                eventually(lambda: load.has_paid(10), within=60)
                began = monotonic()
                server.back_up(directory / "backup")
                backup_s = monotonic() - began
                eventually(lambda: load.has_paid(40) and len(inbox.refused) >= 4, within=60)
                phone_customer = start_wallet_payment(load.create_unpaid())
                restored_to = time()
                eventually(lambda: load.has_created(30, since=restored_to))
                eventually(lambda: load.has_paid(15, since=restored_to))
                phone_customer.enter_code("1111")
                assert phone_customer.title == PAID
            phone_customer.close()
            server.archive_everything()
            server.kill()
        began = monotonic()
        restore(directory / "backup", server.home / "archive", directory / "restored", restored_to)
        restored = PostgresServer(directory / "restored", after_port, watchdog)
        restored.start()
        eventually(restored.is_writable)
        restore_s = monotonic() - began
        waiting = inbox.refused - set(inbox.accepted)
        assert waiting  # their retries were in a delay topic of the lost Kafka
        owner = urls_with_passwords(restored.url, {"mizan_owner": password_of("mizan_owner")})["mizan_owner"]
        advance_clock(owner)
        inbox.refuses = False
        with (
            losable_kafka() as kafka,
            whole_stack(tmp_path / "stack", kafka.engines(), restored.url, "", **SETTINGS) as stack,
        ):
            check_restored(stack, application, load, inbox, restored_to)
        restored.kill()
    print(
        f"backup {backup_s:.1f} s, restore {restore_s:.1f} s; {len(load.created)} created, {len(load.paid)} paid, "
        f"{len(waiting)} webhooks were pending"
    )


def start_wallet_payment(checkout_url: str) -> Customer:
    """Pay up to the page that asks for the code."""
    customer = Customer(f"{checkout_url}?lang=en")
    customer.pay_by_wallet("adfali", "0921234567")
    assert customer.answer.ok
    return customer


def check_restored(
    stack: RunningStack, application: dict[str, str], load: Load, inbox: WebhookInbox, restored_to: float
) -> None:
    """Compare the restored installation with what merchants, customers and the bank know."""
    load.move_to(stack.read()["api_base_url"])
    paid = wait_settled(stack, application["application_id"], inbox)
    assert load.find_missing([one for one in load.created if one.at < restored_to]) == []
    later = [one for one in load.created if one.began_at > restored_to]
    assert load.find_missing(later) == [one.uuid for one in later]
    assert {one.uuid for one in load.paid if one.at < restored_to} <= paid

    status, findings = audit(stack)
    assert status == 1
    unknown = {finding["id"] for finding in findings if finding["check"] == "charges_known"}
    behind = {finding["id"] for finding in findings if finding["check"] == "charges_paid"}
    assert len(unknown) + len(behind) == len(findings), findings
    intents = charged_intents(stack)
    # Each payment after the point in time, and nothing else.
    assert {intents[attempt] for attempt in unknown} == set(intents.values()) - paid - {
        intents[attempt] for attempt in behind
    }
    assert {one.uuid for one in load.paid if one.began_at > restored_to} <= {
        intents[attempt] for attempt in unknown
    }
    # The attempt of the wallet was there, so the provider can be asked about it.
    (attempt,) = behind
    decided = run_mizan(
        stack, "attempt", "decide", attempt, "paid", "--reason", "restored", "--reference", "at the bank"
    )
    assert "paid" in decided.stdout + decided.stderr
    assert intents[attempt] in wait_settled(stack, application["application_id"], inbox)
    assert {finding["check"] for finding in audit(stack)[1]} == {"charges_known"}


def charged_intents(stack: RunningStack) -> dict[str, str]:
    """Return the intent of each attempt that is paid in the sandbox's ledger."""
    facts = stack.read()
    secret = Path(facts["sandbox_secret_file"]).read_text().strip()
    answer = requests.get(
        f"{facts['sandbox_url']}/charges",
        params={"after": FIRST_ID},
        headers={"Authorization": sandbox_authorization(secret)},
        timeout=30,
    )
    charges = json.loads(answer.text)["charges"]
    assert len(charges) < 1000  # one page
    return {charge["attempt"]: charge["intent"] for charge in charges if charge["status"] == "paid"}

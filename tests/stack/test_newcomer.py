"""What a newcomer finds after `make run`: a shop, a demo application, and a first API call to copy."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from shared.platform.settings import KEY_VARIABLES, DatabaseSettings, KafkaSettings
from shared.platform.tokens import sandbox_authorization
from stack.services import SERVICES
from tests.checkout.customer import Customer
from tests.engines import TestEngines
from tests.stack.running_stack import PROJECT, RunningStack, whole_stack
from tests.waiting import eventually
from tests.webhooks.merchants import is_signed
from tests.webhooks.receivers import Receiver

pytestmark = pytest.mark.timeout(420)

Start = Callable[[], RunningStack]


@pytest.fixture
def start(
    tmp_path: Path, engines: TestEngines, database_settings: DatabaseSettings, kafka_settings: KafkaSettings
) -> Iterator[Start]:
    """Start the real services on the engines of the test, each time in the same directory."""
    places = engines, database_settings.url, kafka_settings.topic_prefix
    with ExitStack() as started:
        yield lambda: started.enter_context(whole_stack(tmp_path / "stack", *places))


@pytest.mark.stack
def test_api_call_of_the_banner_works_also_after_a_restart(start: Start) -> None:
    """First it is 201, and the intent can be paid. After a restart it returns the same intent, charged once."""
    stack = start()
    demo = stack.read()["demo"]
    credentials = {"application_id", "api_key", "access_token", "webhook_secret"}
    people = {"owner_email", "owner_password", "operator_email", "operator_password"}
    assert set(demo) == credentials | people
    first = _copied_call(stack.output)
    assert first.status_code == 201
    intent = first.json()["data"]
    assert intent["checkout_url"] == f"http://127.0.0.1:{stack.port_base + 2}/pay/{intent['uuid']}"
    Customer(intent["checkout_url"]).pay_by_card("4242424242424242")
    assert stack.stop() == 0

    again = start()
    assert again.read()["demo"] == demo
    assert f"buy a coffee: open {again.read()['shop_url']}" in again.output
    (application,) = _mizan(again, "app", "list", "--json")["applications"]
    assert application["webhook_url"] == f"http://127.0.0.1:{again.port_base + 8}/webhooks/mizan"
    repeated = _copied_call(again.output)
    assert (repeated.status_code, repeated.json()["data"]["uuid"]) == (200, intent["uuid"])
    assert repeated.json()["data"]["status"] == "succeeded"
    sandbox = again.read()["sandbox_url"]
    secret = Path(again.read()["sandbox_secret_file"]).read_text().strip()
    charges = requests.get(
        f"{sandbox}/charges",
        params={"intent": intent["uuid"]},
        headers={"Authorization": sandbox_authorization(secret)},
        timeout=30,
    )
    assert [charge["status"] for charge in charges.json()["charges"]] == ["paid"]


def test_payment_from_api_call_to_signed_webhook(start: Start) -> None:
    """§1: an intent created by API, paid on the hosted page, reported by a signed webhook. Part of `make test`.

    The command line finds the stack and its keys, and creates an application with a webhook to this machine,
    which a development stack allows. Secret files are private.
    """
    stack = start()
    with Receiver() as shop:
        made = _mizan(stack, "app", "create", "--name", "My shop", "--webhook-url", shop.url, "--json")
        headers = {"X-API-Key": made["api_key"], "Authorization": f"Bearer {made['access_token']}"}
        body = {"merchant_reference": "order-1", "amount": 25_000, "currency": "LYD"}
        url = f"{stack.read()['api_base_url']}/payment-intents"
        created = requests.post(url, json=body, headers=headers, timeout=30)
        assert created.status_code == 201
        intent = created.json()["data"]
        customer = Customer(intent["checkout_url"])
        customer.pay_by_card("4242424242424242")
        customer.close()
        webhook = eventually(lambda: shop.requests)[0]
    assert is_signed(webhook.body, webhook.headers["service-signature"], made["webhook_secret"])
    event = json.loads(webhook.body)
    assert (event["event"], event["data"]) == ("payment_intent.succeeded", {"uuid": intent["uuid"]})
    retrieved = requests.get(f"{url}/{intent['uuid']}", headers=headers, timeout=30)
    assert retrieved.json()["data"]["status"] == "succeeded"
    rolled = _mizan(stack, "app", "roll-secret", made["application_id"], "--json")
    assert rolled["webhook_secret"] != made["webhook_secret"]
    assert requests.get(stack.read()["api_reference_url"], timeout=30).ok
    _check_keys_of_processes(stack)
    for name in ("keys/provider_keys", "demo.json", "stack.json", "supervisord.conf"):
        assert (stack.directory / name).stat().st_mode & 0o777 == 0o600


def _check_keys_of_processes(stack: RunningStack) -> None:
    """Each process has the keys of its own purposes in its environment, and no other (docs/security.md)."""
    pids = stack.read()["pids"]
    for service in SERVICES:
        variables = Path(f"/proc/{pids[service.name]}/environ").read_text().split("\0")
        found = {name for name in (line.partition("=")[0] for line in variables) if "_KEYS" in name}
        assert found == {f"{KEY_VARIABLES[purpose]}_FILE" for purpose in service.key_purposes}, service.name


def _copied_call(output: str) -> requests.Response:
    """Run the curl command of the banner, as a person would copy it."""
    command = output[output.index("    curl ") :].partition("\n\n")[0]
    curl, url, *rest = shlex.split(command.replace("\\\n", " "))
    assert curl == "curl"
    options = list(zip(rest[::2], rest[1::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
    (body,) = [value for option, value in options if option == "-d"]
    return requests.post(url, data=body, headers=headers, timeout=30)


def _mizan(stack: RunningStack, *arguments: str) -> Any:
    environment = {**os.environ, "STACK_DIR": str(stack.directory)}  # noqa: TID251 - the child gets ours
    for given in ("DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS"):
        environment.pop(given, None)
    done = subprocess.run(
        [PROJECT / "bin" / "mizan", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

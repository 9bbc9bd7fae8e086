"""A real stack after one payment and one webhook exports every metric that rules and panels use."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from stack.ports import find_free_ports
from stack.services import SERVICES
from tests.checkout.customer import Customer
from tests.databases import Databases
from tests.engines import TestEngines
from tests.observability.exposed import read, texts
from tests.observability.expressions import named_in
from tests.observability.files import PROMETHEUS, alerts, all_expressions
from tests.observability.prometheus_tools import find_tool
from tests.stack.running_stack import RunningStack, whole_stack
from tests.waiting import eventually
from tests.webhooks.receivers import Receiver

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def stack(
    engines: TestEngines, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningStack]:
    """A stack in which a customer has paid and the merchant was notified."""
    database = databases.take()
    directory = tmp_path_factory.mktemp("observed") / "stack"
    places = engines, databases.url(database), f"t{uuid4().hex[:8]}."
    with whole_stack(directory, *places) as running:
        _pay_and_be_told(running)
        yield running
    databases.drop(database)


def ports(stack: RunningStack) -> list[int]:
    return [stack.port_base + service.port_offset for service in SERVICES]


def test_every_metric_of_rules_and_panels_is_exported_with_its_labels(stack: RunningStack) -> None:
    """The monitor polls every few seconds, so some metrics appear later."""
    wanted = {(place, named) for place, expression in all_expressions() for named in named_in(expression)}
    assert len(wanted) > 50

    def missing() -> list[str]:
        exposed = read(texts(ports(stack)))
        found = ((place, exposed.lacks(named)) for place, named in wanted)
        return sorted(f"{place}: {lack}" for place, lack in found if lack is not None)

    try:
        eventually(lambda: not missing(), within=30, every=1)
    except AssertionError:
        pytest.fail("\n".join(missing()))


def test_promtool_accepts_all_metric_names(stack: RunningStack) -> None:
    promtool = find_tool("promtool")
    for page in texts(ports(stack)):
        done = subprocess.run(
            [promtool, "check", "metrics"],
            input=page,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        said = (done.stdout + done.stderr).splitlines()
        assert [line for line in said if line.startswith("mizan_")] == []


def test_payment_and_webhook_are_counted_once(stack: RunningStack) -> None:
    """Whichever worker handled the requests."""
    pages = "\n".join(texts(ports(stack)))
    for line in (
        "mizan_intent_creations_total 1.0",
        'mizan_attempts_started_total{method="card",provider="sandbox"} 1.0',
        'mizan_attempts_settled_total{method="card",outcome="paid",provider="sandbox"} 1.0',
        'mizan_attempt_sent_to_settled_seconds_count{method="card",provider="sandbox"} 1.0',
        'mizan_provider_request_duration_seconds_count{operation="start",outcome="paid",provider="sandbox"} 1.0',
        'mizan_webhook_tries_total{outcome="2xx",step="1"} 1.0',
    ):
        assert line in pages.splitlines()


def test_prometheus_scrapes_every_service_and_evaluates_every_rule_and_panel(
    stack: RunningStack, tmp_path: Path
) -> None:
    """With the files of the repository and the ports of this stack. No alert fires."""
    with _prometheus(stack, tmp_path) as ask:
        wanted = {service.name for service in SERVICES}
        eventually(lambda: _jobs_that_are_up(ask) == wanted, within=60, every=0.5)
        for place, expression in all_expressions():
            answer = ask("query", query=expression)
            assert answer["status"] == "success", (place, answer)
        rules = eventually(lambda: _evaluated(ask), within=60, every=0.5)
        assert {rule["name"]: rule["health"] for rule in rules} == {alert.name: "ok" for alert in alerts()}
        assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


@contextmanager
def _prometheus(stack: RunningStack, directory: Path) -> Iterator[Any]:
    program, port = find_tool("prometheus"), find_free_ports(1)[0]
    for file in PROMETHEUS.rglob("*.yml"):
        copy = directory / file.relative_to(PROMETHEUS)
        copy.parent.mkdir(exist_ok=True)
        text = file.read_text().replace("_interval: 15s", "_interval: 1s")
        copy.write_text(re.sub(r"127\.0\.0\.1:80(\d\d)", partial(_moved, stack.port_base), text))
    process = subprocess.Popen(
        [
            program,
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stderr=subprocess.DEVNULL,
    )

    def ask(path: str, **query: str) -> Any:
        try:
            return requests.get(f"http://127.0.0.1:{port}/api/v1/{path}", params=query, timeout=30).json()
        except requests.RequestException:
            return {"status": "away", "data": {"result": [], "groups": []}}

    try:
        yield ask
    finally:
        process.terminate()
        process.wait(30)


def _moved(port_base: int, address: re.Match[str]) -> str:
    return f"127.0.0.1:{port_base + int(address[1])}"


def _jobs_that_are_up(ask: Any) -> set[str]:
    return {series["metric"]["job"] for series in ask("query", query="up == 1")["data"]["result"]}


def _evaluated(ask: Any) -> list[dict[str, Any]]:
    """Return all rules once they have been evaluated, and before that an empty list."""
    rules = [rule for group in ask("rules")["data"]["groups"] for rule in group["rules"]]
    return [] if any(rule["health"] == "unknown" for rule in rules) else rules


def _pay_and_be_told(stack: RunningStack) -> None:
    facts = stack.read()
    with Receiver() as shop:
        made = stack.mizan("app", "create", "--name", "Coffee", "--webhook-url", shop.url, "--json")
        intent = _create_intent(facts["api_base_url"], made)
        customer = Customer(f"{intent['checkout_url']}?lang=en")
        customer.pay_by_card("4242424242424242")
        customer.close()
        eventually(lambda: shop.requests)
    eventually(lambda: "mizan_webhook_delivered_total 1.0" in texts([stack.port_base + 5])[0])


def _create_intent(api: str, made: dict[str, str]) -> dict[str, str]:
    headers = {"X-API-Key": made["api_key"], "Authorization": f"Bearer {made['access_token']}"}
    body = {"merchant_reference": "order-1", "amount": 25_000, "currency": "LYD"}
    answer = requests.post(f"{api}/payment-intents", json=body, headers=headers, timeout=30)
    assert answer.status_code == 201
    intent: dict[str, str] = answer.json()["data"]
    return intent

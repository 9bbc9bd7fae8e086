"""The example shops of docs/examples with the real API and webhooks, from the pay button to fulfilment."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.domain.intents.states import IntentTrigger
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.settings import Settings
from tests.api.conftest import move_intent
from tests.api.running_api import RunningApi, running_api
from tests.merchants.document import copy_files
from tests.merchants.example_shop import HOOK, ExampleShop
from tests.merchants.languages import LANGUAGES
from tests.waiting import eventually
from tests.webhooks.conftest import Webhooks
from tests.webhooks.merchants import Merchant

PAID_ORDER, LATE_ORDER = "order-1042", "order-1043"


@dataclass(frozen=True, slots=True)
class Business:
    """A shop in one language, and its application at Mizan."""

    shop: ExampleShop
    merchant: Merchant

    def buy(self, reference: str) -> str:
        """Pay up to the redirect, and return the uuid of the intent."""
        answer = self.shop.pay(reference)
        uuid = (self.shop.directory / "intents" / reference).read_text()
        assert answer.status_code == 303, answer.text
        assert answer.headers["Location"].endswith(f"/pay/{uuid}?lang=en")
        return uuid

    def wait_for(self, *paid: str, deliveries: int) -> None:
        eventually(lambda: self.merchant.statuses() == {"succeeded": deliveries})
        eventually(lambda: self.shop.settled() and self.shop.files("paid") == set(paid))


@pytest.fixture
def api(webhook_settings: Settings) -> Iterator[RunningApi]:
    with running_api(webhook_settings.database) as made:
        yield made


@pytest.fixture
def businesses(
    api: RunningApi, database: Database, webhook_settings: Settings, tmp_path: Path
) -> Iterator[list[Business]]:
    box = SecretBox(webhook_settings.secret_keys)
    with ExitStack() as opened:
        made = []
        for language in LANGUAGES:
            language.require()
            directory = tmp_path / language.name
            directory.mkdir()
            shop = ExampleShop(language, directory)
            merchant = Merchant(database, box, f"{shop.url}{HOOK}")
            opened.enter_context(
                shop.open(
                    api_url=base(api),
                    api_key=merchant.application.api_key,
                    access_token=merchant.application.access_token,
                    secrets=merchant.secret,
                )
            )
            made.append(Business(shop, merchant))
        yield made


@pytest.mark.stack
def test_webhooks_fulfil_paid_and_late_paid_orders_once(
    businesses: list[Business], database: Database, webhooks: Webhooks, api: RunningApi, tmp_path: Path
) -> None:
    """One order is paid, another expires and is paid late. No customer returns."""
    paid = [business.buy(PAID_ORDER) for business in businesses]
    late = [business.buy(LATE_ORDER) for business in businesses]
    assert [
        business.buy(PAID_ORDER) for business in businesses
    ] == paid  # a second click finds the same intent
    with webhooks.running_with_relay():
        for uuid in paid:
            move_intent(database, uuid, IntentTrigger.PAYMENT_CONFIRMED)
        for uuid in late:
            move_intent(database, uuid, IntentTrigger.EXPIRE)
        for business in businesses:
            business.wait_for(PAID_ORDER, deliveries=2)
            assert business.shop.page(LATE_ORDER) == "canceled"
        for uuid in late:
            move_intent(database, uuid, IntentTrigger.PAYMENT_CONFIRMED)
        for business in businesses:
            business.wait_for(PAID_ORDER, LATE_ORDER, deliveries=3)
    for business in businesses:
        log = business.shop.log
        assert [log.count(f"fulfil {order}") for order in (PAID_ORDER, LATE_ORDER)] == [1, 1], log

    _assert_curl_creates_and_retrieves(api, businesses[0].merchant, tmp_path)


def _assert_curl_creates_and_retrieves(api: RunningApi, merchant: Merchant, directory: Path) -> None:
    copy_files(directory, "create.sh", "retrieve.sh")

    def answer_to(script: str, **more: str) -> dict[str, object]:
        environment = {
            **os.environ,  # noqa: TID251  a process of its own needs PATH and the like
            "MIZAN_URL": base(api),
            "MIZAN_API_KEY": merchant.application.api_key,
            "MIZAN_ACCESS_TOKEN": merchant.application.access_token,
            **more,
        }
        done = subprocess.run(["sh", script], cwd=directory, env=environment, capture_output=True, check=True)
        data: dict[str, object] = json.loads(done.stdout)["data"]
        return data

    created = answer_to("create.sh")
    assert (created["merchant_reference"], created["amount"]) == ("order-1044", 25_500)
    assert created["metadata"] == {"branch": "tripoli"}
    assert answer_to("create.sh") == created
    assert answer_to("retrieve.sh", UUID=str(created["uuid"])) == created


def base(api: RunningApi) -> str:
    return api.url.removesuffix("/payment-intents")

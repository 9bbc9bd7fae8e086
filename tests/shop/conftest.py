"""A shop in the process of the test, with a stand-in for Mizan. The test runs the shop's worker."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from examples.shop.app import Shop, create_shop
from examples.shop.database import Database
from examples.shop.settings import Settings
from shared.domain.deliveries.signing import sign_body, signing_key
from tests.page_client import page_text
from tests.shop.mizan_stand_in import MizanStandIn

SECRET = "whsec_first-of-the-shop"
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


@dataclass
class ShopInTest:
    settings: Settings
    mizan: MizanStandIn
    shop: Shop = field(init=False)
    browser: FlaskClient = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start the shop, or start it again as after a kill: only its file remains."""
        self.shop = create_shop(self.settings)
        self.browser = self.shop.app.test_client()

    def form(self, page: str, to: str, **fields: str) -> TestResponse:
        """Fill in and submit a form of that page."""
        hidden = dict(_HIDDEN.findall(self.browser.get(page).text))
        return self.browser.post(to, data={**hidden, **fields})

    def buy(self, **fields: str) -> str:
        """Buy a coffee. Return the path of the order page."""
        answer = self.form("/", "/orders", **{"coffee": "1", **fields})
        assert answer.status_code == 303, answer.text
        (number,) = self.rows("select max(number) from orders")[0]
        ((order_id,),) = self.rows("select id from orders where number = ?", number)
        return f"/orders/{order_id}"

    def send(self, content: dict[str, Any] | bytes, secret: str = SECRET, **headers: str) -> TestResponse:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        signed = {"Service-Signature": sign(body, secret), "Content-Type": "application/json"}
        return self.browser.post("/webhooks/mizan", data=body, headers={**signed, **headers})

    def send_event(self, event: str = "payment_intent.succeeded", uuid: str | None = None) -> TestResponse:
        """Send a webhook, with a new id, for `uuid` or for the only intent."""
        uuid = uuid or self.mizan.only_intent()["uuid"]
        return self.send({"id": str(uuid4()), "event": event, "data": {"uuid": uuid}})

    def work(self) -> None:
        self.shop.worker.work()

    def state(self, page: str) -> str:
        found = re.search(r'data-state="(\w+)"', self.browser.get(page).text)
        assert found is not None
        return found[1]

    def steps(self, page: str) -> list[str]:
        order_id = page.rpartition("/")[2]
        return [
            row["step"]
            for row in self.rows("select step from journal where order_id = ? order by id", order_id)
        ]

    def admin(self) -> str:
        return page_text(self.browser.get("/admin?lang=en").text)

    def rows(self, query: str, *values: Any) -> list[Any]:
        with Database(self.settings.database).reading() as connection:
            return connection.execute(query, values).fetchall()

    def make_due(self) -> None:
        """Make all checks and webhooks due now."""
        with Database(self.settings.database).transaction() as connection:
            connection.execute("update payments set ask_at = 0 where ask_at is not null")
            connection.execute("update inbox set work_at = 0 where work_at is not null")


def sign(body: bytes, secret: str = SECRET) -> str:
    return sign_body(body, signing_key(secret))


@pytest.fixture
def mizan() -> Iterator[MizanStandIn]:
    with MizanStandIn().running() as running:
        yield running


@pytest.fixture
def shop(tmp_path: Path, mizan: MizanStandIn) -> ShopInTest:
    credentials = tmp_path / "credentials.json"
    keys = {"api_key": "pk_of-the-shop", "access_token": "at_of-the-shop", "webhook_secret": SECRET}
    credentials.write_text(json.dumps(keys))
    settings = Settings(
        host="127.0.0.1",
        port=0,
        mizan_url=mizan.url,
        public_url="http://127.0.0.1:8008",
        database=tmp_path / "shop.sqlite",
        credentials_file=credentials,
        dashboard_url=None,
    )
    return ShopInTest(settings, mizan)

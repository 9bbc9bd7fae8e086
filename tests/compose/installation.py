"""An installation in containers as its people meet it: a merchant's server, customers, an operator with a shell."""

import json
from dataclasses import dataclass
from itertools import count
from typing import Any

import requests

from tests.checkout.customer import Customer
from tests.compose.project import Project
from tests.waiting import eventually

GOOD_CARD = "4242424242424242"
_numbers = count(1)
# By a pipe: psql puts variables into what it reads, and not into what it is told with -c.
_ASK = (
    'PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") '
    'psql --host=127.0.0.1 --username=mizan --dbname=mizan -qAt "$1" <<<"$2"'
)


@dataclass(frozen=True, slots=True)
class Installation:
    project: Project

    def demo(self) -> dict[str, str]:
        """What `mizan demo` has written down for the shop."""
        demo: dict[str, str] = json.loads(self.project.inside("shop", "cat", "/var/lib/mizan/demo/demo.json"))
        return demo

    def order(self) -> dict[str, Any]:
        """A new intent, by the API, through the proxy."""
        body = {
            "merchant_reference": f"{self.project.name}-{next(_numbers)}",
            "amount": 25_000,
            "currency": "LYD",
        }
        made = requests.post(self._api(), json=body, headers=self._credentials(), timeout=20)
        assert made.status_code == 201, made.text
        intent: dict[str, Any] = made.json()["data"]
        return intent

    def status(self, intent: dict[str, Any]) -> str:
        found = requests.get(f"{self._api()}/{intent['uuid']}", headers=self._credentials(), timeout=20)
        assert found.status_code == 200, found.text
        return str(found.json()["data"]["status"])

    def pay(self, intent: dict[str, Any], card: str = GOOD_CARD) -> Customer:
        customer = Customer(f"{intent['checkout_url']}?lang=en")
        customer.pay_by_card(card)
        customer.close()
        return customer

    def paid_order(self) -> dict[str, Any]:
        intent = self.order()
        self.pay(intent)
        assert self.status(intent) == "succeeded"
        return intent

    def sql(self, statement: str, intent: dict[str, Any]) -> str:
        """The only column of the only row, or nothing; :'intent' is the intent's uuid."""
        answer = self.project.inside(
            "postgres", "bash", "-c", _ASK, "psql", f"--set=intent={intent['uuid']}", statement
        )
        return answer.strip()

    def let_expire(self, intent: dict[str, Any]) -> None:
        self.sql(
            "update payment_intents set expires_at = now() - interval '1 s' where uuid = :'intent'", intent
        )

    def wait_delivered(self, intent: dict[str, Any], within: float = 120) -> None:
        statement = "select status from webhook_deliveries where intent_uuid = :'intent'"
        eventually(lambda: self.sql(statement, intent) == "succeeded", within=within, every=0.5)

    def audit(self) -> str:
        """Raises where something is lost, doubled or stuck."""
        return self.project.inside("scheduler", "mizan", "audit", "--json")

    def _api(self) -> str:
        return f"{self.project.url('API_PORT')}/api/v1/payment-intents"

    def _credentials(self) -> dict[str, str]:
        demo = self.demo()
        return {"X-API-Key": demo["api_key"], "Authorization": f"Bearer {demo['access_token']}"}

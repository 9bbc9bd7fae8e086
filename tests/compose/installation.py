"""An installation in containers, used as a merchant's server, a customer and an operator would."""

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
# Through standard input: psql does not replace variables in -c.
_PSQL = (
    'PGPASSWORD=$(cat "$POSTGRES_PASSWORD_FILE") '
    'psql --host=127.0.0.1 --username=mizan --dbname=mizan -qAt "$1" <<<"$2"'
)


@dataclass(frozen=True, slots=True)
class Installation:
    project: Project

    def demo(self) -> dict[str, str]:
        """Return what `mizan demo` has written for the shop."""
        demo: dict[str, str] = json.loads(self.project.inside("shop", "cat", "/var/lib/mizan/demo/demo.json"))
        return demo

    def create_intent(self) -> dict[str, Any]:
        """Create an intent by the API, through the proxy."""
        body = {
            "merchant_reference": f"{self.project.name}-{next(_numbers)}",
            "amount": 25_000,
            "currency": "LYD",
        }
        response = requests.post(self._api(), json=body, headers=self._credentials(), timeout=20)
        assert response.status_code == 201, response.text
        intent: dict[str, Any] = response.json()["data"]
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

    def create_paid_intent(self) -> dict[str, Any]:
        intent = self.create_intent()
        self.pay(intent)
        assert self.status(intent) == "succeeded"
        return intent

    def sql(self, statement: str, intent: dict[str, Any]) -> str:
        """Return the only value of the result, or an empty text. :'intent' is the uuid of the intent."""
        answer = self.project.inside(
            "postgres", "bash", "-c", _PSQL, "psql", f"--set=intent={intent['uuid']}", statement
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
        """Run `mizan audit`. Raises ProgramFailedError if something is lost, duplicated or stuck."""
        return self.project.command_line("audit", "--json")

    def _api(self) -> str:
        return f"{self.project.url('API_PORT')}/api/v1/payment-intents"

    def _credentials(self) -> dict[str, str]:
        demo = self.demo()
        return {"X-API-Key": demo["api_key"], "Authorization": f"Bearer {demo['access_token']}"}

"""Creates intents through the API of a running stack, and pays them at the checkout with a browser."""

from dataclasses import dataclass
from itertools import count

import requests
from playwright.sync_api import expect

from tests.browser import Visitors

PAID = "Your payment is complete"
BEING_CONFIRMED = "Your payment is being confirmed"
GOOD_CARD = "4242424242424242"
SILENT_CARD = "4000000000000077"
"""The sandbox charges this card, but never responds."""
_numbers = count(1)


@dataclass(frozen=True)
class StackPayments:
    api_base_url: str
    visitors: Visitors

    def create_intent(self, api_key: str, access_token: str) -> dict[str, str]:
        """Return the intent as the API returns it."""
        headers = {"X-API-Key": api_key, "Authorization": f"Bearer {access_token}"}
        body = {"merchant_reference": f"order-{next(_numbers)}", "amount": 25_000, "currency": "LYD"}
        url = f"{self.api_base_url}/payment-intents"
        response = requests.post(url, json=body, headers=headers, timeout=10)
        assert response.status_code == 201
        intent: dict[str, str] = response.json()["data"]
        return intent

    def pay(self, intent: dict[str, str], card: str = GOOD_CARD, outcome: str = PAID) -> None:
        checkout_url = intent["checkout_url"]
        customer = self.visitors.make(checkout_url.partition("/pay/")[0]).open(f"{checkout_url}?lang=en")
        customer.get_by_role("radio", name="Bank card").check()
        customer.get_by_label("Card number").fill(card)
        customer.get_by_label("Expiry date").fill("12/34")
        customer.get_by_label("Security code").fill("737")
        customer.get_by_role("button", name="Pay").click()
        expect(customer.get_by_role("heading", name=outcome)).to_be_visible()
        customer.close()

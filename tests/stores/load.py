"""Merchants' servers that create intents and customers who pay them, and what each was told, and when."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, pairwise
from queue import Empty, Queue
from threading import Event, Lock, Thread
from time import time
from typing import Any, Self

import requests

from tests.checkout.customer import Customer
from tests.webhooks.receivers import Received, Reply

PAID = "Your payment is complete"
CONFIRMING = "Your payment is being confirmed"
"""Also for a good card, if the machine is so busy that the sandbox answers too late."""
GOOD_CARD = "4242424242424242"
SILENT_CARD = "4000000000000077"
"""The sandbox charges this card, but answers too late."""

_PACE_S = 0.03
_EVERY_SILENT = 12
_WAITING_CUSTOMERS = 10
_HTTP_TIMEOUT_S = 30
_orders = count(1)


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """An intent that was created or paid, as its merchant or customer was told between `began_at` and `at`."""

    uuid: str
    began_at: float
    at: float
    reference: str = ""


class Load:
    """Runs in threads from the beginning to the end of its context. Whoever gets no answer asks again."""

    def __init__(
        self, api_url: str, credentials: Mapping[str, str], *, merchants: int = 2, customers: int = 0
    ) -> None:
        self._intents_url = f"{api_url}/payment-intents"
        self.headers = {
            "X-API-Key": credentials["api_key"],
            "Authorization": f"Bearer {credentials['access_token']}",
            # Another worker of the API may answer each request.
            "Connection": "close",
        }
        self.created: list[Acknowledged] = []
        self.paid: list[Acknowledged] = []
        self.clicked: set[str] = set()
        """The intents that a customer tried to pay."""
        self.failures: Counter[str] = Counter()
        """Requests without the expected answer, by what came instead."""
        self._lock = Lock()
        self._stop = Event()
        self._checkout: Queue[str] = Queue()
        self._threads = [
            *(Thread(target=self._create_all, name="merchant", daemon=True) for _ in range(merchants)),
            *(Thread(target=self._pay_all, name="customer", daemon=True) for _ in range(customers)),
        ]
        self._has_customers = customers > 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def move_to(self, api_url: str) -> None:
        """Ask another API about the same intents."""
        self._intents_url = f"{api_url}/payment-intents"

    def has_created(self, number: int, *, since: float = 0) -> bool:
        return sum(1 for one in self.created[:] if one.began_at >= since) >= number

    def has_paid(self, number: int, *, since: float = 0) -> bool:
        return sum(1 for one in self.paid[:] if one.began_at >= since) >= number

    def longest_gap(self, since: float) -> float:
        """Return the time without service: the longest one between two answers 201, of which the later came since."""
        times = sorted(one.at for one in self.created)
        return max(later - earlier for earlier, later in pairwise(times) if later > since)

    def find_missing(self, created: list[Acknowledged]) -> list[str]:
        """Return those of these intents that the API does not have, by asking it for each."""
        answers = self.retrieve([one.uuid for one in created])
        return [uuid for uuid, status in answers.items() if status == "404"]

    def retrieve(self, uuids: list[str]) -> dict[str, str]:
        """Return the status of each intent, or the HTTP status of an answer other than 200."""
        with requests.Session() as session, ThreadPoolExecutor(4) as pool:

            def ask(uuid: str) -> tuple[str, str]:
                url = f"{self._intents_url}/{uuid}"
                answer = session.get(url, headers=self.headers, timeout=_HTTP_TIMEOUT_S)
                is_found = answer.status_code == requests.codes.ok
                return uuid, answer.json()["data"]["status"] if is_found else str(answer.status_code)

            return dict(pool.map(ask, uuids))

    def create_unpaid(self) -> str:
        """Create an intent that the customers of this load leave alone. Return the address of its checkout."""
        with requests.Session() as session:
            intent = self._create(session, f"order-{next(_orders)}")
        assert intent is not None
        return str(intent["checkout_url"])

    def _create_all(self) -> None:
        with requests.Session() as session:
            while not self._stop.wait(_PACE_S):
                intent = self._create(session, f"order-{next(_orders)}")
                if intent and self._has_customers and self._checkout.qsize() < _WAITING_CUSTOMERS:
                    self._checkout.put(intent["checkout_url"])

    def _create(self, session: requests.Session, reference: str) -> dict[str, Any] | None:
        """Create an intent, however often it has to be asked for. Return None only if the load is stopped."""
        body = {"merchant_reference": reference, "amount": 25_000, "currency": "LYD"}
        while not self._stop.is_set():
            began_at = time()
            answer = self._ask(
                lambda: session.post(
                    self._intents_url, json=body, headers=self.headers, timeout=_HTTP_TIMEOUT_S
                ),
                requests.codes.created,
                requests.codes.ok,
            )
            if answer is None:
                self._stop.wait(_PACE_S)
                continue
            intent: dict[str, Any] = answer.json()["data"]
            self.created.append(Acknowledged(intent["uuid"], began_at, time(), reference))
            return intent
        return None

    def _pay_all(self) -> None:
        while not self._stop.is_set():
            with suppress(Empty):
                self._pay(self._checkout.get(timeout=_PACE_S))

    def _pay(self, checkout_url: str) -> None:
        """Pay once. A customer who sees no page, or another one, does not try again: this might be a second charge."""
        uuid = checkout_url.rpartition("/")[2]
        try:
            customer = Customer(f"{checkout_url}?lang=en")
        except requests.RequestException as error:
            self._note_failure(type(error).__name__)
            return
        with self._lock:
            self.clicked.add(uuid)
            card = SILENT_CARD if len(self.clicked) % _EVERY_SILENT == 0 else GOOD_CARD
        began_at = time()
        try:
            answer = customer.pay_by_card(card)
            if customer.title == PAID:
                self.paid.append(Acknowledged(uuid, began_at, time()))
            elif card == GOOD_CARD and customer.title != CONFIRMING:
                self._note_failure(f"page {answer.status_code}")
        except requests.RequestException as error:
            self._note_failure(type(error).__name__)
        finally:
            customer.close()

    def _ask(self, request: Callable[[], requests.Response], *expected: int) -> requests.Response | None:
        try:
            answer = request()
        except requests.RequestException as error:
            self._note_failure(type(error).__name__)
            return None
        if answer.status_code in expected:
            return answer
        self._note_failure(str(answer.status_code))
        return None

    def _note_failure(self, what: str) -> None:
        with self._lock:
            self.failures[what] += 1


class WebhookInbox:
    """How the merchant's receiver answers: every fifth delivery is refused at its first try, while it `refuses`."""

    def __init__(self) -> None:
        self.refuses = True
        self.accepted: Counter[str] = Counter()
        """How often `payment_intent.succeeded` was accepted, by intent."""
        self.refused: set[str] = set()
        """The intents whose webhook was refused once."""
        self._seen: set[str] = set()

    def __call__(self, received: Received) -> Reply:
        body: dict[str, Any] = json.loads(received.body)
        uuid = body["data"]["uuid"]
        is_first = body["id"] not in self._seen
        self._seen.add(body["id"])
        if self.refuses and is_first and len(self._seen) % 5 == 0:
            self.refused.add(uuid)
            return Reply(500)
        if body["event"] == "payment_intent.succeeded":
            self.accepted[uuid] += 1
        return Reply(200)

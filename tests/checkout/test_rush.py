"""500 customers open the checkout and pay at the same moment: each sees the right page, and nobody is charged twice."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from time import perf_counter

import pytest
import requests

from bench.figures import percentile
from shared.domain.intents.intent import Intent
from tests.checkout.processes import checkout_processes
from tests.checkout.test_payments import FORM, PAID, PROCESSING
from tests.checkout.world import CheckoutWorld
from tests.page_client import page_title
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.filterwarnings("ignore::ResourceWarning")]

CUSTOMERS = 500
SECOND_TABS = 50
"""So many of them pay in two tabs at once."""
DECLINED = 50
"""So many pay with a card that is declined."""
BUSY = "This page is not available right now"
"""What the checkout says with 503, on a very busy machine: a request waits 5 s for a connection to the database."""
_PATIENCE_S = 120.0
_PAYS, _DECLINES = "4242424242424242", "4000000000000002"
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


@dataclass
class Tab:
    """A browser's tab with the checkout of an intent."""

    url: str
    card: str
    seconds: list[float] = field(default_factory=list)
    """How long each step took."""
    repeats: int = 0
    answer: requests.Response = field(init=False)
    _session: requests.Session = field(default_factory=requests.Session)

    def open(self) -> None:
        self._call("GET")

    def pay(self) -> None:
        hidden = dict(_HIDDEN.findall(self.answer.text))
        fields = {"method": "card", "card_number": self.card, "expiry": "12/34", "security_code": "737"}
        self._call("POST", {**hidden, **fields})

    def close(self) -> None:
        self._session.close()

    @property
    def title(self) -> str:
        return page_title(self.answer.text)

    def _call(self, method: str, fields: dict[str, str] | None = None) -> None:
        """Send it, and once more if the connection had been closed as idle meanwhile, as browsers do."""
        began = perf_counter()
        try:
            self.answer = self._session.request(method, self.url, data=fields, timeout=_PATIENCE_S)
        except requests.ConnectionError:
            assert self.seconds, "a new connection was closed"
            self.repeats += 1
            self.answer = self._session.request(method, self.url, data=fields, timeout=_PATIENCE_S)
        self.seconds.append(perf_counter() - began)


def _at_once(action: Callable[[Tab], None], tabs: Sequence[Tab]) -> None:
    start = Barrier(len(tabs))

    def begin(tab: Tab) -> None:
        start.wait(_PATIENCE_S)
        action(tab)

    with ThreadPoolExecutor(len(tabs)) as pool:
        list(pool.map(begin, tabs))


@pytest.mark.timeout(400)
def test_five_hundred_customers_pay_at_the_same_moment(
    world: CheckoutWorld, repository_root: Path, tmp_path: Path
) -> None:
    """50 of them in two tabs, 50 with a card that is declined. An outcome that is unknown at first is settled."""
    service = checkout_processes(world, repository_root, tmp_path)
    intents = [world.make_intent() for _ in range(CUSTOMERS)]
    cards = {intent.uuid: _DECLINES if n < DECLINED else _PAYS for n, intent in enumerate(intents)}
    tabs = [
        Tab(world.page(intent, "en"), cards[intent.uuid]) for intent in [*intents, *intents[-SECOND_TABS:]]
    ]
    with (tmp_path / "log").open("wb") as log, service.running(log=log):
        eventually(lambda: service.status() == 200)
        _at_once(Tab.open, tabs)
        assert Counter((tab.answer.status_code, tab.title) for tab in tabs) == {(200, FORM): len(tabs)}
        _at_once(Tab.pay, tabs)
        after_paying = Counter((tab.answer.status_code, tab.title) for tab in tabs)
        print(_report(tabs, after_paying))
        assert set(after_paying) <= {(200, PAID), (200, PROCESSING), (200, FORM), (503, BUSY)}
        _try_again([tab for tab in tabs if tab.answer.status_code == 503])
        if any(world.status(intent) == "processing" for intent in intents):
            with world.verifying():
                eventually(
                    lambda: not any(world.status(one) == "processing" for one in intents), 120, every=1
                )
        _at_once(Tab.open, tabs)
        for tab in tabs:
            expected = PAID if tab.card == _PAYS else FORM
            assert (tab.answer.status_code, tab.title) == (200, expected)
            tab.close()
    for intent in intents:
        _assert_charged_once_or_never(world, intent, pays=cards[intent.uuid] == _PAYS)


def _try_again(tabs: Sequence[Tab]) -> None:
    """Do what customers do who were told that the page is not available: load it again, and pay if it is not paid."""
    for tab in tabs:
        tab.open()
        if tab.title == FORM and tab.card == _PAYS:
            tab.pay()


def _assert_charged_once_or_never(world: CheckoutWorld, intent: Intent, *, pays: bool) -> None:
    charges = [charge["status"] for charge in world.charges(intent)]
    states = [state for state, _ in world.attempts(intent)]
    assert charges.count("paid") == pays
    assert states.count("paid") == pays
    assert "duplicate" not in states
    assert world.status(intent) == ("succeeded" if pays else "requires_payment_method")
    assert world.events(intent).count("succeeded") == pays


def _report(tabs: Sequence[Tab], after_paying: Counter[tuple[int, str]]) -> str:
    steps = []
    for number, what in enumerate(("page", "payment with its result")):
        seconds = [tab.seconds[number] for tab in tabs]
        p50, p99 = percentile(seconds, 0.5), percentile(seconds, 0.99)
        steps.append(f"{what} p50 {p50:.2f} s, p99 {p99:.2f} s, slowest {max(seconds):.2f} s")
    return (
        f"rush: {CUSTOMERS} customers in {len(tabs)} tabs: {'; '.join(steps)}; {dict(after_paying)}; "
        f"{sum(tab.repeats for tab in tabs)} requests were repeated on a new connection"
    )

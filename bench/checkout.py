"""The checkout: server time and weight of its page, and 200 customers who pay at the same moment."""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Barrier
from time import perf_counter

import psycopg
import requests
from cryptography.fernet import Fernet

from bench.figures import Figure, ratio
from bench.http_load import LoadPlan, LoadResult
from bench.merchant import ROUND_S, WARM_UP_S, Caller, Installation, run_plan
from bench.world import RunningService, World

ROUNDS = 5
CUSTOMERS = 200
CARD = {"method": "card", "card_number": "4242424242424242", "expiry": "12/40", "security_code": "123"}
_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')
_OURS = re.compile(r'(?:src|href)="(/static/[^"]+)"')


def measure(world: World) -> Iterable[Figure]:
    installation = Installation(world, CUSTOMERS)
    with checkout_service(world, installation) as (checkout, _), installation.serving() as api:
        yield from _page_beside_retrieval(_Visitors(installation, checkout), installation.caller(api))
        yield Figure("checkout_page_kb", _weight_kb(installation, checkout), "the page with all it loads")
        yield from _simultaneous_payments(installation, checkout)


@contextmanager
def checkout_service(
    world: World, installation: Installation
) -> Iterator[tuple[RunningService, RunningService]]:
    """Run the checkout and the sandbox that it pays with."""
    with TemporaryDirectory(prefix="mizan-bench-") as directory:
        environment = {
            "MIZAN_SECRET_KEYS": Fernet.generate_key().decode(),
            "SANDBOX_SECRET": "only-for-this-measurement",
            "SANDBOX_LEDGER": str(Path(directory) / "sandbox.sqlite"),
        }
        database = installation.database
        with world.service("services.sandbox", database, environment=environment) as sandbox:
            environment["SANDBOX_URL"] = f"http://127.0.0.1:{sandbox.port}"
            with world.service("services.checkout", database, environment=environment) as checkout:
                yield checkout, sandbox


@dataclass(frozen=True, slots=True)
class _Visitors:
    installation: Installation
    service: RunningService

    def open(self) -> LoadResult:
        """Load pages one after the other, so that only the server's time counts."""
        head = "GET /pay/{n} HTTP/1.1\r\nHost: checkout\r\nAccept: text/html"
        for seconds in (WARM_UP_S, ROUND_S):
            outcome = run_plan(
                LoadPlan(self.service.port, head, "", self.installation.uuids, 1, seconds, 200)
            )
        return outcome


def _page_beside_retrieval(visitors: _Visitors, caller: Caller) -> Iterable[Figure]:
    pages, retrievals = [], []
    for _ in range(ROUNDS):
        pages.append(visitors.open().p50_ms)
        retrievals.append(caller.retrieve(connections=1).p50_ms)
    yield Figure(
        "checkout_page_vs_retrieve",
        ratio(pages, retrievals),
        "server time of a page, relative to an API retrieval",
    )
    yield Figure("checkout_page_ms", median(pages), "server time of the page, median")


def _weight_kb(installation: Installation, checkout: RunningService) -> float:
    base = f"http://127.0.0.1:{checkout.port}"
    page = requests.get(f"{base}/pay/{installation.uuids[0]}", timeout=60)
    parts = [requests.get(base + path, timeout=60) for path in set(_OURS.findall(page.text))]
    return round(sum(len(answer.content) for answer in [page, *parts]) / 1024, 1)


def csrf_token(page: str) -> str:
    found = _TOKEN.search(page)
    assert found is not None
    return found[1]


def _simultaneous_payments(installation: Installation, checkout: RunningService) -> Iterable[Figure]:
    start = Barrier(CUSTOMERS)

    def pay(uuid: str) -> float:
        """Return the seconds from submitting the form to the receipt."""
        url = f"http://127.0.0.1:{checkout.port}/pay/{uuid}"
        with requests.Session() as browser:
            token = csrf_token(browser.get(url, timeout=60).text)
            start.wait(120)
            began = perf_counter()
            browser.post(url, data={**CARD, "csrf_token": token}, timeout=60).raise_for_status()
            return perf_counter() - began

    with ThreadPoolExecutor(CUSTOMERS) as pool:
        seconds = list(pool.map(pay, installation.uuids[:CUSTOMERS]))
    with psycopg.connect(installation.database.url) as connection:
        paid = connection.execute("select count(*) from payment_attempts where state = 'paid'").fetchone()
        other = connection.execute("select count(*) from payment_attempts where state <> 'paid'").fetchone()
    assert paid is not None
    assert other is not None
    yield Figure("checkout_200_paid", paid[0], f"of {CUSTOMERS} customers who pay at the same moment, paid")
    yield Figure(
        "checkout_200_not_paid_once", other[0], "attempts of these customers that did not end as paid"
    )
    yield Figure("checkout_200_slowest_s", max(seconds), "longest wait of a customer for the receipt")

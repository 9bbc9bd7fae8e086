"""Measures the dashboard's lists: the time of a page with a million rows, compared with a thousand."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import methodcaller
from uuid import UUID

import psycopg
import requests
from cryptography.fernet import Fernet

from bench.figures import Figure, ratio_in_turn
from bench.http_load import LoadPlan
from bench.merchant import ROUND_S, WARM_UP_S, run_plan
from bench.world import World
from shared.domain.accounts.joining import add_member
from shared.domain.accounts.roles import Role
from shared.domain.applications.registry import NewApplication, create_application
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl
from shared.platform.settings import DatabaseSettings

FEW, MANY = 1_000, 1_000_000
_KEY = Fernet.generate_key().decode()
_PASSWORD = "only for this measurement"  # noqa: S105  a throw-away account

# In both cases 100 have failed, evenly spread over 20 days, so the pages show the same. The oldest had no response.
_FILL = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries, step,
                                last_status_code, last_failure)
select uuidv7(make_interval(secs => -20.0 * 86400 * (1 - n::float8 / %(count)s))), uuidv7(), %(application)s,
       'payment_intent.succeeded', 'https://shop.example/hooks', 1,
       case when n %% (%(count)s / 100) = 1 then 'failed' else 'succeeded' end, 1, 1,
       case when n = 1 then null when n %% (%(count)s / 100) = 1 then 503 else 200 end,
       case when n = 1 then 'timeout' end
from generate_series(1, %(count)s) as n;
"""
_FILL_INTENTS = """
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, status, expires_at)
select uuidv7(make_interval(secs => -20.0 * 86400 * (1 - n::float8 / %(count)s))), %(application)s, 'filled-' || n,
       'f' || n, 25000, 'LYD', case when n = 1 then 'processing' when n %% 3 = 0 then 'canceled' else 'succeeded' end,
       mizan_now() + interval '20 days'
from generate_series(1, %(count)s) as n;
"""
_PAGES = {
    "deliveries_page": "deliveries",
    "deliveries_failed_page": "deliveries?status=failed",
    "deliveries_rarest_page": "deliveries?answer=nothing",
    "payments_page": "payments",
    "payments_rarest_page": "payments?status=processing",
}


@dataclass(frozen=True, slots=True)
class Merchant:
    """A merchant whose application has the same number of deliveries and payments."""

    database: DatabaseSettings
    application: UUID


@dataclass(frozen=True, slots=True)
class _Viewer:
    """Somebody who is signed in to the dashboard."""

    application: UUID
    port: int
    cookie: str

    def p50_ms(self, path: str) -> float:
        head = f"GET /applications/{self.application}/{path} HTTP/1.1\r\nHost: dashboard\r\nCookie: {self.cookie}"
        for seconds in (WARM_UP_S, ROUND_S):
            load = run_plan(LoadPlan(self.port, head, "", ["x"], 1, seconds, 200))
        return load.p50_ms


def measure(world: World) -> Iterable[Figure]:
    for name, path, value in ratios_by_size(world, _merchant(world, FEW), _merchant(world, MANY)):
        yield Figure(f"{name}_1m_vs_1k", value, f"{path} with a million rows")


def ratios_by_size(world: World, small: Merchant, large: Merchant) -> Iterable[tuple[str, str, float]]:
    """Return the name and the path of each list, and its time in a large database over that in a small one."""
    with _viewer_of(world, small) as few, _viewer_of(world, large) as many:
        for name, path in _PAGES.items():
            yield name, path, ratio_in_turn(methodcaller("p50_ms", path), many, few)


def _merchant(world: World, count: int) -> Merchant:
    database = world.empty_database()
    with psycopg.connect(database.url) as connection:
        new = NewApplication("bench", webhook_url=WebhookUrl("https://shop.example/hooks"))
        created = create_application(connection, SecretBox((_KEY,)), new)
        add_viewer(connection, created.merchant_id)
        for statement in (_FILL, _FILL_INTENTS):
            connection.execute(statement, {"count": count, "application": created.id})
    return Merchant(database, created.id)


def add_viewer(connection: psycopg.Connection, merchant_id: UUID) -> None:
    """Add the account that measures the lists."""
    add_member(connection, merchant_id, "bench@example.ly", Role.VIEWER, _PASSWORD)


@contextmanager
def _viewer_of(world: World, merchant: Merchant) -> Iterator[_Viewer]:
    environment = {"MIZAN_SECRET_KEYS": _KEY}
    with world.service("services.dashboard", merchant.database, environment=environment) as service:
        yield _Viewer(merchant.application, service.port, _sign_in(service.port))


def _sign_in(port: int) -> str:
    """Sign in and return the Cookie header."""
    with requests.Session() as browser:
        url = f"http://127.0.0.1:{port}/sign-in"
        token = browser.get(url, timeout=60).text.partition('name="csrf_token" value="')[2].partition('"')[0]
        fields = {"email": "bench@example.ly", "password": _PASSWORD, "csrf_token": token}
        browser.post(url, data=fields, timeout=60).raise_for_status()
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies)

"""A merchant for benchmarks: an application in its own database, and API calls as fast as possible."""

import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import msgspec
import psycopg
from cryptography.fernet import Fernet

from bench.http_load import LoadPlan, LoadResult
from bench.world import RunningService, World
from shared.domain.applications.registry import CreatedApplication, NewApplication, create_application
from shared.platform.encryption import SecretBox
from shared.platform.settings import DatabaseSettings

CONNECTIONS = 16
ROUND_S = 3.0
WARM_UP_S = 1.0

_BODY = (
    '{"merchant_reference": "bench-{n}", "amount": 25000, "currency": "LYD", '
    '"description": "Two coffees and a kilo of dates", "customer": {"external_id": "customer-1"}, '
    '"return_url": "https://shop.example/orders/1", "metadata": {"order": "1", "branch": "tripoli"}}'
)

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select %s, 'filled-' || n, 'f' || n, 25000, 'LYD', mizan_now() + interval '20 days' from generate_series(1, %s) as n
"""


class LoadError(Exception):
    """The load did not measure what it should."""


class Installation:
    """A database with one application and some intents."""

    def __init__(self, world: World, intents: int) -> None:
        self._world = world
        self.database: DatabaseSettings = world.empty_database()
        box = SecretBox((Fernet.generate_key().decode(),))
        with psycopg.connect(self.database.url) as connection:
            self.application: CreatedApplication = create_application(
                connection, box, NewApplication("bench")
            )
            connection.execute(_FILL, (self.application.id, intents))
            rows = connection.execute("select uuid::text from payment_intents order by random() limit 1000")
            self.uuids = [str(uuid) for (uuid,) in rows]

    def serving(self) -> AbstractContextManager[RunningService]:
        return self._world.service("services.api", self.database)

    def caller(self, service: RunningService) -> "Caller":
        return Caller(service.port, self.application, self.uuids)


@dataclass
class Caller:
    """A merchant's server that sends each request as soon as the last has its response."""

    port: int
    application: CreatedApplication
    uuids: list[str]

    _numbers: ClassVar = count(step=10_000_000)

    def create(self, seconds: float = ROUND_S, *, warm_up: bool = True) -> LoadResult:
        return self._load("POST /api/v1/payment-intents", _BODY, 201, seconds, warm_up=warm_up)

    def retrieve(self, connections: int = CONNECTIONS, *, warm_up: bool = True) -> LoadResult:
        return self._load("GET /api/v1/payment-intents/{n}", "", 200, ROUND_S, connections, warm_up=warm_up)

    def _load(
        self,
        line: str,
        body: str,
        wanted: int,
        seconds: float,
        connections: int = CONNECTIONS,
        *,
        warm_up: bool,
    ) -> LoadResult:
        head = "\r\n".join(
            [
                f"{line} HTTP/1.1",
                "Host: api",
                "Accept: application/json",
                "Content-Type: application/json",
                f"X-API-Key: {self.application.api_key}",
                f"Authorization: Bearer {self.application.access_token}",
            ]
        )
        for duration in (WARM_UP_S, seconds) if warm_up else (seconds,):
            outcome = run_plan(
                LoadPlan(
                    self.port, head, body, self.uuids, connections, duration, wanted, next(self._numbers)
                )
            )
        return outcome


def run_plan(plan: LoadPlan) -> LoadResult:
    """Run the load generator in a separate process. Raises LoadError if it fails or gets an unexpected status."""
    finished = subprocess.run(
        [sys.executable, "-m", "bench.http_load"],
        input=msgspec.json.encode(plan),
        capture_output=True,
        check=False,
    )
    if finished.returncode:
        raise LoadError(f"the load generator failed: {finished.stderr.decode(errors='replace').strip()}")
    outcome = msgspec.json.decode(finished.stdout, type=LoadResult)
    if outcome.unwanted:
        counts = ", ".join(f"{count} were {status}" for status, count in outcome.unwanted.items())
        raise LoadError(f"of {outcome.answers} responses, {counts}; expected {plan.wanted}")
    return outcome

"""The API over HTTP: creates beside the same SQL in pgbench, retrievals, a thousand rows beside a million."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import ClassVar

import msgspec
import psutil
import psycopg
from cryptography.fernet import Fernet

from bench.figures import Figure
from bench.http_load import Outcome, Plan
from bench.world import RunningService, World
from shared.applications.registry import CreatedApplication, NewApplication, create_application
from shared.intents.store import CREATE_SQL
from shared.sealing import SecretBox
from shared.settings import DatabaseSettings
from stack.postgres import programs

CONNECTIONS = 16
ROUNDS = 5
ROUND_S = 3.0
WARM_UP_S = 1.0
MANY = 1_000_000
FEW = 1_000

# The same statement, with what the API binds to it; numbers that must differ are drawn by pgbench.
_PGBENCH_VALUES = (
    *(":application", "('order-' || :number)", "('r' || :number)", ":amount", ":currency", ":description"),
    *(":customer", ":url", ":metadata", "null"),
)
_VALUES = {
    "amount": "25000",
    "currency": "LYD",
    "description": "Two coffees and a kilo of dates",
    "customer": "customer-1",
    "url": "https://shop.example/orders/1",
    "metadata": '{"order":"1","branch":"tripoli"}',
}
_BODY = (
    '{"merchant_reference": "bench-{n}", "amount": 25000, "currency": "LYD", '
    '"description": "Two coffees and a kilo of dates", "customer": {"external_id": "customer-1"}, '
    '"return_url": "https://shop.example/orders/1", "metadata": {"order": "1", "branch": "tripoli"}}'
)

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select %s, 'filled-' || n, 'f' || n, 25000, 'LYD', mizan_now() + interval '20 days' from generate_series(1, %s) as n
"""


def measure(world: World) -> Iterable[Figure]:
    few, many = Installation(world, FEW), Installation(world, MANY)
    with few.serving() as small, many.serving() as large:
        yield from _compared_with_pgbench(few, small)
        yield from _compared_by_size(few.caller(small), many.caller(large))
        yield Figure(
            "api_worker_memory_mb",
            _largest_worker_mb(small),
            "the larger worker of the API, all that is resident",
        )


def _compared_with_pgbench(installation: "Installation", service: RunningService) -> Iterable[Figure]:
    caller = installation.caller(service)
    bare, created, retrieved = [], [], []
    for _ in range(ROUNDS):
        bare.append(_pgbench(installation))
        created.append(caller.create())
        retrieved.append(caller.retrieve())
    rates = [outcome.per_second for outcome in created]
    yield Figure("create_vs_pgbench", _ratio(rates, bare), "creates/s over HTTP, of the same SQL by pgbench")
    yield Figure("create_per_s", median(rates), f"creates/s over HTTP, {CONNECTIONS} connections")
    yield Figure("pgbench_per_s", median(bare), f"the same SQL by pgbench, prepared, {CONNECTIONS} clients")
    yield Figure("create_p99_ms", median(o.p99_ms for o in created), "of these creates, 99th percentile")
    yield Figure(
        "retrieve_vs_create",
        _ratio([outcome.per_second for outcome in retrieved], rates),
        "retrievals/s over creates/s",
    )


def _compared_by_size(small: "Caller", large: "Caller") -> Iterable[Figure]:
    kinds: dict[str, Callable[[Caller], Outcome]] = {"create": Caller.create, "retrieve": Caller.retrieve}
    for kind, call in kinds.items():
        with_few, with_many = [], []
        for _ in range(ROUNDS):
            with_few.append(call(small).per_second)
            with_many.append(call(large).per_second)
        yield Figure(
            f"{kind}_1m_vs_1k", _ratio(with_many, with_few), f"{kind}s/s with {MANY:,} intents, over {FEW:,}"
        )


def _ratio(these: list[float], those: list[float]) -> float:
    """Of rounds that followed each other, the middle one: a noisy moment spoils one round, not the figure."""
    return round(median(this / that for this, that in zip(these, those, strict=True)), 3)


class Installation:
    """A database with some intents in it, and one application."""

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
            self._uuids = [str(uuid) for (uuid,) in rows]

    def serving(self) -> AbstractContextManager[RunningService]:
        return self._world.service("services.api", self.database)

    def caller(self, service: RunningService) -> "Caller":
        return Caller(service.port, self.application, self._uuids)


@dataclass
class Caller:
    """A merchant's server that calls as fast as it is answered."""

    port: int
    application: CreatedApplication
    uuids: list[str]

    _numbers: ClassVar = count(step=10_000_000)

    def create(self) -> Outcome:
        return self._load("POST /api/v1/payment-intents", _BODY, 201)

    def retrieve(self) -> Outcome:
        return self._load("GET /api/v1/payment-intents/{n}", "", 200)

    def _load(self, line: str, body: str, wanted: int) -> Outcome:
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
        self._run(
            Plan(self.port, head, body, self.uuids, CONNECTIONS, WARM_UP_S, wanted, next(self._numbers))
        )
        return self._run(
            Plan(self.port, head, body, self.uuids, CONNECTIONS, ROUND_S, wanted, next(self._numbers))
        )

    def _run(self, plan: Plan) -> Outcome:
        finished = subprocess.run(
            [sys.executable, "-m", "bench.http_load"],
            input=msgspec.json.encode(plan),
            capture_output=True,
            check=True,
        )
        outcome = msgspec.json.decode(finished.stdout, type=Outcome)
        if outcome.unwanted:
            raise AssertionError(f"{outcome.unwanted} answers were not {plan.wanted}")
        return outcome


def _pgbench(installation: Installation) -> float:
    """Transactions a second."""
    script = "\\set number random(1, 9000000000000000)\n" + _bound(CREATE_SQL) + ";\n"
    variables = {**_VALUES, "application": str(installation.application.id)}
    finished = subprocess.run(
        [
            *(
                str(programs() / "pgbench"),
                "--no-vacuum",
                "--protocol=prepared",
                "--file=-",
                f"--time={ROUND_S:.0f}",
            ),
            *(f"--client={CONNECTIONS}", "--jobs=2"),
            *(f"--define={name}={value}" for name, value in variables.items()),
            installation.database.url,
        ],
        input=script,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in finished.stdout.splitlines() if line.startswith("tps = ")]
    return float(line.split()[2])


def _bound(statement: str) -> str:
    for number, value in reversed(list(enumerate(_PGBENCH_VALUES, start=1))):
        statement = statement.replace(f"${number}", value)
    return " ".join(statement.split())


def _largest_worker_mb(service: RunningService) -> float:
    workers = psutil.Process(service.pid).children(recursive=True)
    return round(max(worker.memory_info().rss for worker in workers) / 2**20, 1)

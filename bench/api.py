"""The API over HTTP: creates beside the same SQL in pgbench, retrievals, a thousand rows beside a million."""

import subprocess
from collections.abc import Iterable
from statistics import median

import psutil

from bench.figures import ROUNDS, Figure, ratio, ratio_in_turn
from bench.merchant import CONNECTIONS, ROUND_S, Caller, Installation
from bench.world import RunningService, World
from shared.domain.intents.store import CREATE_SQL
from stack.postgres import bin_directory

MANY = 1_000_000
FEW = 1_000

# The same statement, with what the API binds to it; numbers that must differ are drawn by pgbench.
_PGBENCH_VALUES = (
    *(":application", "('order-' || :number)", "('r' || :number)", ":amount", ":currency", ":description"),
    *(":customer", ":url", ":metadata", "null", "null"),
)
_VALUES = {
    "amount": "25000",
    "currency": "LYD",
    "description": "Two coffees and a kilo of dates",
    "customer": "customer-1",
    "url": "https://shop.example/orders/1",
    "metadata": '{"order":"1","branch":"tripoli"}',
}


def measure(world: World) -> Iterable[Figure]:
    few, many = Installation(world, FEW), Installation(world, MANY)
    with few.serving() as small, many.serving() as large:
        yield from _compared_with_pgbench(few, small)
        for kind, value in ratios_by_size(few.caller(small), many.caller(large)):
            yield Figure(f"{kind}_1m_vs_1k", value, f"{kind}s/s with {MANY:,} intents, over {FEW:,}")
        yield Figure(
            "api_worker_memory_mb",
            _largest_worker_mb(small),
            "the larger worker of the API, all that is resident",
        )


def _compared_with_pgbench(installation: Installation, service: RunningService) -> Iterable[Figure]:
    caller = installation.caller(service)
    bare, created, retrieved = [], [], []
    for _ in range(ROUNDS):
        bare.append(_pgbench(installation))
        created.append(caller.create())
        retrieved.append(caller.retrieve())
    rates = [outcome.per_second for outcome in created]
    yield Figure("create_vs_pgbench", ratio(rates, bare), "creates/s over HTTP, of the same SQL by pgbench")
    yield Figure("create_per_s", median(rates), f"creates/s over HTTP, {CONNECTIONS} connections")
    yield Figure("pgbench_per_s", median(bare), f"the same SQL by pgbench, prepared, {CONNECTIONS} clients")
    yield Figure("create_p99_ms", median(o.p99_ms for o in created), "of these creates, 99th percentile")
    yield Figure(
        "retrieve_vs_create",
        ratio([outcome.per_second for outcome in retrieved], rates),
        "retrievals/s over creates/s",
    )


def ratios_by_size(small: Caller, large: Caller) -> Iterable[tuple[str, float]]:
    """Return each kind of request, and its rate in a large database over that in a small one."""
    yield "create", ratio_in_turn(lambda caller: caller.create().per_second, large, small)
    yield "retrieve", ratio_in_turn(lambda caller: caller.retrieve().per_second, large, small)


def _pgbench(installation: Installation) -> float:
    """Transactions a second."""
    script = "\\set number random(1, 9000000000000000)\n" + _bound(CREATE_SQL) + ";\n"
    variables = {**_VALUES, "application": str(installation.application.id)}
    finished = subprocess.run(
        [
            *(
                str(bin_directory() / "pgbench"),
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

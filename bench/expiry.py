"""Expiry: intents canceled per second, compared with plain SQL, and how late single intents are canceled."""

from collections.abc import Iterable
from statistics import median
from time import monotonic, sleep

import psycopg

from bench.due_intents import DUE, fill_due
from bench.figures import Figure, percentile, ratio
from bench.world import World
from services.scheduler.jobs.expiry import POLL_INTERVAL_S, IntentExpiry
from shared.domain.intents.store import DUE_CONDITION as IS_DUE
from shared.domain.intents.store import expire_sql
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.settings import DatabaseSettings

ROUNDS = 3
SINGLE_INTENTS = 100
SINGLE_OVER_S = 10.0

_SPREAD = """
update payment_intents set expires_at = mizan_now() + make_interval(secs => 2 + random() * %s)
where starts_with(merchant_reference, 'single-')
"""
_LATENESS = """
select extract(epoch from updated_at - expires_at)::float8 from payment_intents
where starts_with(merchant_reference, 'single-') and status = 'canceled'
"""


def measure(world: World) -> Iterable[Figure]:
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(_bare_sql(_with_due_intents(world)))
        ours.append(DUE / expire_all(_with_due_intents(world)))
    yield Figure("expiry_vs_sql", ratio(ours, bare), "expiries/s, relative to the same SQL in one statement")
    yield Figure("expiry_per_s", median(ours), f"intents expired, from {DUE:,} due at the same moment")
    yield Figure("expiry_sql_per_s", median(bare), "the same SQL in one statement")
    lateness = _single_intents(world)
    yield Figure("expiry_lateness_p50_ms", median(lateness), "single intents, from expires_at to canceled")
    yield Figure("expiry_lateness_p99_ms", percentile(lateness, 0.99), "the same, 99th percentile")


def _with_due_intents(world: World) -> DatabaseSettings:
    settings = world.empty_database()
    with psycopg.connect(settings.url, autocommit=True) as connection:
        fill_due(connection, "due-")
    return settings


def _bare_sql(settings: DatabaseSettings) -> float:
    with psycopg.connect(settings.url, autocommit=True) as connection:
        started = monotonic()
        row = connection.execute(expire_sql(IS_DUE).encode()).fetchone()
        seconds = monotonic() - started
    assert row is not None
    assert row[0] == DUE
    return DUE / seconds


def expire_all(settings: DatabaseSettings) -> float:
    """Run the job until nothing is due. Return the seconds it took."""
    # As the service names its sessions: the job leaves room for those of others, and these are not counted as such.
    database = Database(settings, "scheduler", **STABLE_PLANS)
    job = IntentExpiry(database)
    started = monotonic()
    while (pause := job.run_once()) < POLL_INTERVAL_S:
        sleep(pause)
    seconds = monotonic() - started
    with database.cursor() as cursor:
        left = cursor.execute(f"select from payment_intents where {IS_DUE} limit 1".encode())
        assert left.rowcount == 0
    database.close()
    return seconds


def _single_intents(world: World) -> list[float]:
    settings = world.empty_database()
    with (
        world.service("services.scheduler", settings, world.empty_topics()),
        psycopg.connect(settings.url, autocommit=True) as connection,
    ):
        fill_due(connection, "single-", in_s=3600, count=SINGLE_INTENTS)
        connection.execute(_SPREAD, (SINGLE_OVER_S,))
        sleep(SINGLE_OVER_S + 4)
        lateness = [float(seconds) * 1000 for (seconds,) in connection.execute(_LATENESS)]
    assert len(lateness) == SINGLE_INTENTS
    return lateness

"""Expiry: intents canceled per second beside the bare SQL, and what a great wave of them leaves to the API."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from time import monotonic, sleep
from typing import Any

import psycopg

from bench.figures import Figure, ratio
from bench.merchant import Caller, Installation
from bench.world import World
from services.scheduler.expiry import Expiry
from shared.db.connections import STEADY_PLANS
from shared.db.pool import Database
from shared.intents.store import DUE as IS_DUE
from shared.intents.store import expire_sql
from shared.settings import DatabaseSettings

DUE = 100_000
ROUNDS = 3
WAVES = 3
WAVE_IN_S = 20.0
BEFORE_S = 5.0
AFTER_S = 20.0
PATIENCE_S = 60.0

_FILL = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at, description,
                             customer_external_id, return_url, metadata)
select %(application)s, %(wave)s || n, %(wave)s || n, 25000, 'LYD', mizan_now() + make_interval(secs => %(in_s)s),
       'Two coffees and a kilo of dates', 'customer-1', 'https://shop.example/orders/1',
       '{"order":"1","branch":"tripoli"}'
from generate_series(1, %(count)s) as n
"""
_CREATED = "select count(*) from payment_intents where created_at >= %s and created_at < %s"
_WAVE_DUE = """
select min(expires_at), extract(epoch from min(expires_at) - mizan_now())::float8
from payment_intents where starts_with(merchant_reference, %(wave)s)
"""
_WAVE_DONE = """
select max(updated_at), count(*)
from payment_intents where starts_with(merchant_reference, %(wave)s) and status = 'canceled' and event_seq = 2
"""


def measure(world: World) -> Iterable[Figure]:
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(_bare_sql(_with_due_intents(world)))
        ours.append(_by_the_duty(_with_due_intents(world)))
    yield Figure("expiry_vs_sql", ratio(ours, bare), "expiries/s, of the same SQL in one statement")
    yield Figure("expiry_per_s", median(ours), f"intents expired, from {DUE:,} due at one moment")
    yield Figure("expiry_sql_per_s", median(bare), "the same SQL in one statement")
    yield from _beside_the_api(world)


def _with_due_intents(world: World) -> DatabaseSettings:
    settings = world.empty_database()
    with psycopg.connect(settings.url, autocommit=True) as connection:
        values = {"application": "00000000-0000-0000-0000-000000000000", "wave": "w", "in_s": 0, "count": DUE}
        connection.execute(_FILL, values)
        connection.execute("checkpoint")
    return settings


def _bare_sql(settings: DatabaseSettings) -> float:
    with psycopg.connect(settings.url, autocommit=True) as connection:
        started = monotonic()
        row = connection.execute(expire_sql(IS_DUE).encode()).fetchone()
        seconds = monotonic() - started
    assert row == (DUE,)
    return DUE / seconds


def _by_the_duty(settings: DatabaseSettings) -> float:
    database = Database(settings, "bench", **STEADY_PLANS)
    duty = Expiry(database)
    with psycopg.connect(settings.url, autocommit=True) as connection:
        started = monotonic()
        while _anything_due(connection):
            sleep(duty.turn())
        seconds = monotonic() - started
    database.close()
    return DUE / seconds


def _anything_due(connection: psycopg.Connection) -> bool:
    query = "select from payment_intents where status = 'requires_payment_method' limit 1"
    return connection.execute(query).rowcount > 0


def _beside_the_api(world: World) -> Iterable[Figure]:
    """Creates of one steady load: before a wave falls due, and until its last intent is canceled."""
    installation = Installation(world, 1_000)
    kafka = world.empty_topics()
    with (
        installation.serving() as api,
        world.service("services.scheduler", installation.database, kafka),
        psycopg.connect(installation.database.url, autocommit=True) as connection,
    ):
        caller = installation.caller(api)
        waves = [_wave(installation, caller, connection, f"wave-{number}-") for number in range(WAVES)]
    yield Figure(
        "create_while_expiring",
        median(wave.share_left for wave in waves),
        f"creates/s while {DUE:,} intents expire, of those just before",
    )
    yield Figure(
        "expiry_beside_creates_per_s",
        median(DUE / wave.seconds for wave in waves),
        "intents expired meanwhile, by the scheduler that also publishes them",
    )


@dataclass(frozen=True, slots=True)
class Wave:
    share_left: float
    """Of the API's creates."""
    seconds: float
    """Until all its intents were canceled."""


def _wave(installation: Installation, caller: Caller, connection: psycopg.Connection, prefix: str) -> Wave:
    values = {"application": installation.application.id, "wave": prefix, "in_s": WAVE_IN_S, "count": DUE}
    connection.execute(_FILL, values)
    connection.execute("checkpoint")
    due_at, left_s = _row(connection, _WAVE_DUE, {"wave": prefix})
    sleep(left_s - BEFORE_S - 1)
    caller.create(BEFORE_S + 1 + AFTER_S)
    (load_ended_at,) = _row(connection, "select max(created_at) from payment_intents", ())
    ended_at = _last_canceled_at(connection, prefix)
    return Wave(
        _creates_per_s(connection, due_at, min(ended_at, load_ended_at))
        / _creates_per_s(connection, due_at - timedelta(seconds=BEFORE_S), due_at),
        (ended_at - due_at).total_seconds(),
    )


def _last_canceled_at(connection: psycopg.Connection, prefix: str) -> datetime:
    """Once every intent of the wave is canceled, by exactly one change."""
    deadline = monotonic() + PATIENCE_S
    while True:
        last, canceled = _row(connection, _WAVE_DONE, {"wave": prefix})
        if canceled == DUE:
            assert isinstance(last, datetime)
            return last
        assert monotonic() < deadline, f"only {canceled} of {DUE} intents were canceled"
        sleep(0.5)


def _creates_per_s(connection: psycopg.Connection, since: datetime, until: datetime) -> float:
    (created,) = _row(connection, _CREATED, (since, until))
    return float(created) / (until - since).total_seconds()


def _row(connection: psycopg.Connection, query: str, values: Any) -> Any:
    row = connection.execute(query.encode(), values).fetchone()
    assert row is not None
    return row

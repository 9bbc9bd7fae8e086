"""Many intents expire at once while the API creates others: how many creates per second remain."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from time import monotonic, sleep
from typing import Any

import psycopg

from bench.due_intents import DUE, fill_due
from bench.figures import Figure
from bench.merchant import Caller, Installation
from bench.world import World

WAVES = 3
WAVE_IN_S = 20.0
BEFORE_S = 5.0
AFTER_S = 20.0
PATIENCE_S = 180.0

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
    """Compare creates per second before many intents expire and until the last of them is canceled."""
    installation = Installation(world, 1_000)
    kafka = world.empty_topics()
    with (
        installation.serving() as api,
        world.service("services.scheduler", installation.database, kafka),
        psycopg.connect(installation.database.url, autocommit=True) as connection,
    ):
        caller = installation.caller(api)
        waves = [_wave(caller, connection, f"wave-{number}-") for number in range(WAVES)]
    yield Figure(
        "create_while_expiring",
        median(wave.share_left for wave in waves),
        f"creates/s while {DUE:,} intents expire, relative to just before",
    )
    yield Figure(
        "expiry_beside_creates_per_s",
        median(DUE / wave.seconds for wave in waves),
        "intents expired meanwhile, by the scheduler that also publishes their events",
    )


@dataclass(frozen=True, slots=True)
class Wave:
    share_left: float
    """Creates per second during the wave, relative to before."""
    seconds: float
    """Seconds until all intents of the wave were canceled."""


def _wave(caller: Caller, connection: psycopg.Connection, prefix: str) -> Wave:
    fill_due(connection, prefix, in_s=WAVE_IN_S)
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
    """Wait until every intent of the wave is canceled by exactly one change, and return when the last one was."""
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

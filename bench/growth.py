"""Growth: the same work with 10,000,000 intents and 30,000,000 tries as with 20,000 intents. It takes 22 to 60 minutes.

Both installations have fifteen months of payments of twenty applications. Each figure is the ratio of the large one to
the small one, measured in turn.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from time import monotonic, monotonic_ns, sleep

import psycopg

from bench import api, dashboard
from bench.dashboard import Merchant, add_viewer
from bench.due_intents import fill_due
from bench.expiry import expire_all
from bench.figures import Figure, ratio_in_turn
from bench.merchant import WARM_UP_S, Installation
from bench.receiver import receiver
from bench.webhook_installation import WebhookInstallation
from bench.webhooks import deliver
from bench.world import World
from services.scheduler.jobs.month_partitions import MonthPartitions
from shared.platform.database.pool import Database
from shared.platform.settings import RetentionSettings

FEW = 20_000
MANY = int(os.environ.get("GROWTH_INTENTS", "10000000"))  # noqa: TID251  a smaller number, to try the measurement itself
TRIES_OF_EACH = 3
MONTHS = 15
DUE = 20_000
_CHUNK = 500_000
_DROP_AFTER_S = 0.5

_MONTHS_BEFORE = """
select make_month_partitions((date_trunc('month', now() at time zone 'UTC') - make_interval(months => n))::date)
from generate_series(1, %s) as n
"""
# In both installations 100 deliveries of the application have failed, evenly spread, so its pages show the same.
_FILL = """
with numbered as (
    select n, uuidv7((date_trunc('month', now()) - make_interval(months => %(months)s - 1) - now())
                     * (1 - n::float8 / %(all)s)) as id
    from generate_series(%(first)s::bigint + 1, %(first)s + %(count)s) as n
), owned as (
    select *, case n %% 20 when 0 then %(application)s::uuid
                  else uuid7_floor('2020-01-01'::timestamptz + make_interval(hours => (n %% 20)::int))
              end as application
    from numbered
), intents as (
    insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, status,
                                 expires_at, event_seq)
    select id, application, 'filled-' || n, 'f' || n, 25000, 'LYD',
           case when n %% 3 = 0 then 'canceled' else 'succeeded' end, uuid_extract_timestamp(id) + interval '1 day', 2
    from owned
), events as (
    insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at)
    select id, id, 2, 'payment_intent.succeeded', uuid_extract_timestamp(id), uuid_extract_timestamp(id) from owned
), deliveries as (
    insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries, step,
                                    last_status_code)
    select id, id, application, 'payment_intent.succeeded', 'https://shop.example/hooks', 1,
           case when n %% (%(all)s / 100) = 0 then 'failed' else 'succeeded' end, %(tries)s, %(tries)s,
           case when n %% (%(all)s / 100) = 0 then 503 else 200 end
    from owned
)
insert into webhook_tries (delivery_id, number, step, at, duration_ms, url, status_code, response_body)
select id, number, number, uuid_extract_timestamp(id), 20, 'https://shop.example/hooks',
       case when number = %(tries)s and n %% (%(all)s / 100) <> 0 then 200 else 503 end, 'ok'
from owned cross join generate_series(1, %(tries)s) as number
"""
_OLDEST_MONTH = """
select to_regclass('webhook_deliveries' || month), to_regclass('webhook_tries' || month)
from to_char(now() at time zone 'UTC' - make_interval(months => %s), '_YYYY_MM') as month
"""
_GROWN = "payment_intents, intent_events, webhook_deliveries, webhook_tries"


def measure(world: World) -> Iterable[Figure]:
    small, large = _grown(world, FEW), _grown(world, MANY)
    with psycopg.connect(large.database.url) as connection:
        size = connection.execute("select pg_database_size(current_database()) / 2 ^ 30").fetchone()
    assert size is not None
    yield Figure("growth_database_gb", round(size[0], 1), f"{MANY:,} intents, {TRIES_OF_EACH * MANY:,} tries")
    yield from _api(small, large)
    yield from _lists(world, small, large)
    yield _expiry(small, large)
    yield _delivery(world, small, large)
    yield from _drop_month(large)


def _grown(world: World, count: int) -> Installation:
    installation = Installation(world, 0)
    with psycopg.connect(installation.database.url, autocommit=True) as connection:
        connection.execute(_MONTHS_BEFORE, (MONTHS - 1,))
        for first in range(0, count, _CHUNK):
            values = {
                "first": first,
                "count": min(_CHUNK, count - first),
                "all": count,
                "months": MONTHS,
                "tries": TRIES_OF_EACH,
                "application": installation.application.id,
            }
            connection.execute(_FILL.encode(), values)
        add_viewer(connection, installation.application.merchant_id)
        connection.execute(f"vacuum analyze {_GROWN}".encode())
        connection.execute("checkpoint")
        # Of the application that asks for them, from all months.
        step = max(1, count // 20 // 1_000) * 20
        rows = connection.execute(
            "select uuid::text from payment_intents where reference = any(%s)",
            ([f"f{number}" for number in range(20, count + 1, step)][:1_000],),
        )
        installation.uuids = [str(uuid) for (uuid,) in rows]
    return installation


def _api(small: Installation, large: Installation) -> Iterable[Figure]:
    with small.serving() as few, large.serving() as many:
        for kind, value in api.ratios_by_size(small.caller(few), large.caller(many)):
            yield Figure(f"growth_{kind}", value, f"{kind}s/s, large over small")


def _lists(world: World, small: Installation, large: Installation) -> Iterable[Figure]:
    few, many = (Merchant(one.database, one.application.id) for one in (small, large))
    for name, path, value in dashboard.ratios_by_size(world, few, many):
        yield Figure(f"growth_{name}", value, f"time of {path}, large over small")


def _expiry(small: Installation, large: Installation) -> Figure:
    return Figure(
        "growth_expiry", ratio_in_turn(_expiries_per_s, large, small), "expiries/s, large over small"
    )


def _expiries_per_s(installation: Installation) -> float:
    with psycopg.connect(installation.database.url, autocommit=True) as connection:
        fill_due(connection, f"due-{monotonic_ns()}-", count=DUE)
    return DUE / expire_all(installation.database)


def _delivery(world: World, small: Installation, large: Installation) -> Figure:
    with ExitStack() as stack:
        endpoint = stack.enter_context(receiver())

        def webhooks_of(one: Installation) -> WebhookInstallation:
            connection = stack.enter_context(psycopg.connect(one.database.url, autocommit=True))
            connection.execute("set enable_seqscan = off")
            return WebhookInstallation(world, connection, one.database)

        value = ratio_in_turn(lambda one: deliver(one, endpoint), webhooks_of(large), webhooks_of(small))
    return Figure("growth_delivery", value, "webhooks/s of one worker, large over small")


def _drop_month(large: Installation) -> Iterable[Figure]:
    """Drop the oldest month of deliveries and of tries while the API creates intents."""
    with (
        closing(Database(large.database, "bench")) as database,
        large.serving() as service,
        ThreadPoolExecutor(1) as thread,
    ):
        caller = large.caller(service)
        before = caller.create()
        meanwhile = thread.submit(caller.create)
        sleep(WARM_UP_S + _DROP_AFTER_S)
        started = monotonic()
        job = MonthPartitions(database, RetentionSettings())
        for _ in ("webhook_deliveries", "webhook_tries"):
            job.run_once()
        seconds = monotonic() - started
        with database.cursor() as cursor:
            assert cursor.execute(_OLDEST_MONTH, (MONTHS - 1,)).fetchone() == (None, None)
    yield Figure("growth_drop_month_s", round(seconds, 2), "dropping a month of deliveries and tries")
    yield Figure(
        "growth_create_while_dropping_p99",
        round(meanwhile.result().p99_ms / before.p99_ms, 2),
        "p99 of creates meanwhile, over the p99 before",
    )

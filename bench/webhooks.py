"""Throughput of one webhook service, from a full webhooks.deliver to the last record, compared with libcurl alone."""

from collections.abc import Iterable
from statistics import median

from bench.bare_curl import SECRET, posts_per_s
from bench.figures import Figure, ratio
from bench.receiver import Receiver, receiver
from bench.waiting_deliveries import fill_first_tries
from bench.webhook_installation import WebhookInstallation, webhook_installation
from bench.world import World

COUNT = 20_000
BARE_COUNT = 40_000
OLDER = 1_000_000
ROUNDS = 3
TIMEOUT_S = 60.0

# Older deliveries of a few applications, spread over this month up to now, so that new ones share their tables.
_FILL_OLDER = """
with old as (
    select uuidv7((date_trunc('month', now()) - now()) * (1 - n::float8 / %(count)s)) as id, n
    from generate_series(1, %(count)s) as n
),
made as (
    insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries,
                                    last_status_code)
    select id, uuidv7(), uuid7_floor('2026-01-01'::timestamptz + make_interval(hours => n %% 20)),
           'payment_intent.canceled', 'https://shop.example/hooks', 1, 'succeeded', 1, 200
    from old
)
insert into webhook_tries (delivery_id, number, step, at, duration_ms, url, status_code, response_body)
select id, 1, 1, mizan_now(), 20, 'https://shop.example/hooks', 200, 'ok' from old
"""


def measure(world: World) -> Iterable[Figure]:
    bare, ours, among_older = [], [], []
    with receiver() as endpoint, webhook_installation(world) as with_older:
        _fill_older(with_older)
        for _ in range(ROUNDS):
            bare.append(bare_per_s(endpoint))
            with webhook_installation(world) as empty:
                ours.append(deliver(empty, endpoint))
            among_older.append(deliver(with_older, endpoint))
    yield Figure(
        "webhook_vs_bare_curl",
        ratio(ours, bare),
        "webhooks/s by one worker, of the same posts by libcurl alone",
    )
    yield Figure(
        "webhook_vs_bare_curl_1m", ratio(among_older, bare), f"the same, among {OLDER:,} older deliveries"
    )
    yield Figure(
        "webhook_worker_per_s", median(ours), f"webhooks delivered and recorded, {COUNT:,} of one application"
    )
    yield Figure("bare_curl_per_s", median(bare), "the same posts by libcurl alone, 100 in flight")


def bare_per_s(endpoint: Receiver) -> float:
    per_s = posts_per_s(endpoint.hook("bare", SECRET), BARE_COUNT)
    endpoint.take().check_once_each(BARE_COUNT)
    return per_s


def deliver(installation: WebhookInstallation, endpoint: Receiver) -> float:
    """Return webhooks per second, from the first receipt, so that start-up does not count, to the last record."""
    application = installation.application(endpoint)
    fill_first_tries(installation, [application], COUNT)
    # With the slow pipeline: when the service itself stalls, it may take the endpoint for slow and move tries there.
    with installation.webhooks("deliver", "slow"):
        endpoint.wait_for(COUNT, TIMEOUT_S)
        recorded_at = installation.wait_recorded()
    receipts = endpoint.take()
    receipts.check_once_each(COUNT)
    installation.check_recorded_once([application], COUNT)
    return COUNT / (recorded_at - min(receipts.at))


def _fill_older(installation: WebhookInstallation) -> None:
    connection = installation.connection
    connection.execute(_FILL_OLDER.encode(), {"count": OLDER})
    connection.execute("vacuum analyze webhook_deliveries, webhook_tries")
    connection.execute("checkpoint")

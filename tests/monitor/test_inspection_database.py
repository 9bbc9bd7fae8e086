"""One poll of the database reads all figures, and stays cheap on huge tables."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from psycopg import Cursor

from services.monitor.applications.queries import list_applications
from services.monitor.inspection import database, failing_endpoints
from services.monitor.inspection.database import MAX_ROWS, read_database
from services.monitor.inspection.snapshots import BoundedCount, PaymentFigures
from shared.domain.applications.modes import ApplicationMode
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.database.stable_plans import INDEX_ORDER
from shared.platform.settings import DatabaseSettings
from stack.engines import Engines
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.query_plans import explain
from tests.monitor.rows import make_attempt, make_delivery, make_event, make_intent
from tests.monitor.world import MonitorWorld
from tests.postgres_statistics import plan_buffers, plan_nodes, read_plan

MINUTES = timedelta(minutes=1)
HOURS = timedelta(hours=1)


def test_figures_of_an_empty_database_are_zero(world: MonitorWorld) -> None:
    figures = read_database(world.service_database)
    assert figures.payments == PaymentFigures()
    assert figures.payments.share_paid is None
    assert (figures.outbox.count, figures.outbox.oldest_age_s) == (0, 0)
    assert (
        figures.expiry_late_s,
        figures.intake_age_s,
        figures.paused_applications,
        figures.failing_applications,
    ) == (0, 0, 0, 0)
    assert figures.attempts.in_progress == {"sent": 0, "unknown": 0}
    assert (figures.deliveries.waiting, figures.deliveries.overdue_s) == (0, 0)


def test_payments_are_counted_for_the_last_minutes_and_the_last_hour(world: MonitorWorld) -> None:
    for ago in (0 * MINUTES, 10 * MINUTES, 2 * HOURS):
        make_intent(world, ago=ago)
        make_event(world, "succeeded", ago=ago)
        make_event(world, "canceled", ago=ago)
    for state in ("paid", "paid", "declined", "duplicate", "abandoned"):
        make_attempt(world, state)
    payments = read_database(world.service_database).payments
    assert (payments.paid, payments.paid_in_5_minutes, payments.expired) == (BoundedCount(2), 1, 2)
    assert (payments.attempts, payments.attempts_paid, payments.attempts_declined) == (BoundedCount(5), 3, 1)
    assert payments.share_paid == 0.75
    # Two of these intents, and five of the attempts.
    assert (payments.created, payments.created_in_a_minute) == (BoundedCount(7), 6)


def test_payments_of_test_and_live_applications_are_never_counted_together(world: MonitorWorld) -> None:
    """Without a live application those of test applications are shown, so that a local stack has figures."""
    make_intent(world)
    make_event(world, "succeeded")
    make_attempt(world, "paid")
    figures = read_database(world.service_database).payments
    assert (figures.mode, figures.created.count, figures.paid.count, figures.attempts.count) == (
        "test",
        2,
        1,
        1,
    )
    _, live = world.make_application("Live shop", mode=ApplicationMode.LIVE)
    assert read_database(world.service_database).payments == PaymentFigures(mode=ApplicationMode.LIVE)
    intent = make_intent(world, application_id=live.id)
    make_event(world, "succeeded", intent=intent)
    make_attempt(world, "declined", intent=intent, provider="plutu")
    figures = read_database(world.service_database).payments
    assert (figures.mode, figures.created.count, figures.paid.count) == ("live", 1, 1)
    assert (figures.attempts.count, figures.attempts_paid, figures.attempts_declined) == (1, 0, 1)


def test_attempts_in_progress_undecided_and_duplicate_are_counted(world: MonitorWorld) -> None:
    make_attempt(world, "sent", ago=2 * MINUTES)
    make_attempt(world, "unknown", ago=7 * MINUTES)
    make_attempt(world, "unknown", ago=50 * MINUTES, can_be_asked=False)
    make_attempt(world, "awaiting_redirect", ago=3 * HOURS)
    make_attempt(world, "duplicate", ago=9 * HOURS)
    handled = make_attempt(world, "duplicate")
    world.run(
        "update payment_attempts set handled_at = now(), handled_note = 'paid back' where id = %s", handled
    )
    attempts = read_database(world.service_database).attempts
    assert attempts.in_progress == {"sent": 1, "unknown": 2}
    assert 7 * 60 <= attempts.oldest_age_s < 8 * 60
    assert attempts.undecided.count == 1
    assert 50 * 60 <= attempts.undecided.oldest_age_s < 51 * 60
    assert (attempts.awaiting_redirect, attempts.duplicates) == (BoundedCount(1), BoundedCount(1))


def test_many_redirected_customers_do_not_hide_attempts_in_progress(
    world: MonitorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IN_PROGRESS_SQL",):
        monkeypatch.setattr(database, name, getattr(database, name).replace(str(MAX_ROWS + 1), "3"))
    for _ in range(5):
        make_attempt(world, "awaiting_redirect")
    make_attempt(world, "unknown", ago=7 * MINUTES)
    assert read_database(world.service_database).attempts.in_progress["unknown"] == 1


def test_undecided_attempts_beyond_the_limit_set_has_more(
    world: MonitorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "IN_PROGRESS_SQL", database.IN_PROGRESS_SQL.replace(str(MAX_ROWS + 1), "3"))
    monkeypatch.setattr(database, "MAX_ROWS", 2)
    for ago in (50, 40, 30, 20):
        make_attempt(world, "unknown", ago=ago * MINUTES, can_be_asked=False)
    undecided = read_database(world.service_database).attempts.undecided
    assert (undecided.count, undecided.has_more) == (2, True)


def test_late_expiries_late_intake_and_the_outbox_are_measured(world: MonitorWorld) -> None:
    make_intent(world, expires=-2 * MINUTES)
    make_intent(world, "succeeded", expires=-9 * MINUTES)
    make_event(world, "succeeded", ago=8 * MINUTES, is_taken_in=False)
    make_event(world, "processing", ago=90 * MINUTES, is_taken_in=False)
    world.run(
        "insert into outbox (topic, key, payload, created_at) values ('t', 'k', 'p', now() - interval '40 s')"
    )
    figures = read_database(world.service_database)
    assert 120 <= figures.expiry_late_s < 180
    assert 480 <= figures.intake_age_s < 540
    assert figures.outbox.count == 1
    assert 40 <= figures.outbox.oldest_age_s < 60


def test_deliveries_are_counted_by_step_with_the_longest_delay(world: MonitorWorld) -> None:
    """Deliveries of paused applications are not overdue, set aside or not."""
    _, paused = world.make_application("Paused")
    world.run("update applications set webhooks_paused_at = now() where id = %s", paused.id)
    make_delivery(world, step=1, overdue=-5 * MINUTES)
    make_delivery(world, step=3, tries=2, overdue=16 * MINUTES)
    make_delivery(world, step=3, application_id=paused.id, overdue=3 * HOURS, is_set_aside=True)
    make_delivery(world, step=2, application_id=paused.id, overdue=2 * HOURS)
    make_delivery(world, "succeeded", tries=1)
    make_delivery(world, "failed", tries=9)
    make_delivery(world, "failed", tries=9, ago=2 * HOURS)
    figures = read_database(world.service_database)
    deliveries = figures.deliveries
    assert deliveries.pending == {1: 1, 2: 1, 3: 2}
    assert 16 * 60 <= deliveries.overdue_s < 17 * 60
    assert deliveries.set_aside == BoundedCount(1)
    assert (deliveries.succeeded, deliveries.failed, deliveries.tries) == (1, 1, 12)
    assert figures.paused_applications == 1


def test_overview_counts_the_endpoints_that_the_list_of_applications_calls_failing(
    world: MonitorWorld,
) -> None:
    """Also with few payments, and between two tries that are hours apart."""
    made = [
        world.make_application(name)[1].id
        for name in ("Few", "Mixed", "Paused", "Moved", "Ended", "Two", "Proxied")
    ]
    few, mixed, paused, moved, ended, two, proxied = made
    for application in made:
        deliveries = Deliveries(world.database, application)
        deliveries.make_many(
            2 if application == two else 3, "failed" if application == ended else "pending", 500
        )
    Deliveries(world.database, mixed).make("succeeded", 200)
    world.run("update applications set webhooks_paused_at = now() where id = %s", paused)
    world.run("update applications set webhook_url = 'https://new.example.ly' where id = %s", moved)
    world.run("update webhook_deliveries set updated_at = now() - interval '5 hours'")
    # They failed at our own proxy, which says nothing about the endpoint.
    world.run(
        "update webhook_deliveries set last_status_code = null, last_failure = 'proxy_error' where application_id = %s",
        proxied,
    )
    assert read_database(world.service_database).failing_applications == 1
    with world.database.transaction() as connection:
        listed = list_applications(connection, "", None).applications
    assert [one.id for one in listed if one.is_failing] == [few]


def test_counts_beyond_the_limit_set_has_more(world: MonitorWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MAX_ROWS", 2)
    for name in ("OUTBOX_SQL", "CREATED_SQL", "PENDING_SQL"):
        monkeypatch.setattr(database, name, getattr(database, name).replace(str(MAX_ROWS + 1), "3"))
    for _ in range(5):
        make_intent(world)
        make_delivery(world)
        world.run("insert into outbox (topic, key, payload) values ('t', 'k', 'p')")
    figures = read_database(world.service_database)
    assert figures.payments.created == BoundedCount(2, has_more=True)
    assert (figures.outbox.count, figures.outbox.has_more) == (2, True)
    assert figures.deliveries.has_more


@pytest.mark.kills
def test_unavailable_database_raises_an_error(world: MonitorWorld, killable_engines: Engines) -> None:
    read_database(world.service_database)
    killable_engines.postgres.kill()
    with pytest.raises(DatabaseUnavailableError):
        read_database(world.service_database)


_FILL = """
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, status, expires_at)
select uuidv7(-ago), uuidv7(), n, 'r' || (n + %(there)s), 5000, 'LYD',
       (array['succeeded', 'canceled', 'requires_payment_method'])[1 + n %% 3], now() - ago + interval '90 days'
from generate_series(1, %(count)s) as n,
     lateral (select make_interval(hours => 2, secs => 4000000.0 * n / %(count)s) as ago) as given;
insert into payment_attempts (id, intent_uuid, method, provider, state)
select uuidv7(uuid_extract_timestamp(uuid) - now()), uuid, 'card', 'sandbox', 'paid' from payment_intents
where substr(reference, 2)::bigint > %(there)s and status = 'succeeded';
insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at)
select uuidv7(uuid_extract_timestamp(uuid) - now()), uuid, 1, 'payment_intent.' || status, now(), now()
from payment_intents where substr(reference, 2)::bigint > %(there)s;
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries)
select uuidv7(uuid_extract_timestamp(uuid) - now()), uuid, application_id, 'payment_intent.succeeded',
       'https://shop.example/', 1, 'succeeded', 1 from payment_intents
where substr(reference, 2)::bigint > %(there)s"""
_STATEMENTS = {
    name: getattr(database, name)
    for name in dir(database)
    if name.endswith("_SQL") and name not in ("BOUNDS_SQL", "MODE_SQL", "PAUSED_SQL")
} | {"failing endpoints": failing_endpoints.COUNT_SQL}


@pytest.fixture
def cursor(database_settings: DatabaseSettings) -> Iterator[Cursor[Any]]:
    database = Database(replace(database_settings, statement_timeout_s=250), "monitor", **INDEX_ORDER)
    with database.cursor() as cursor:
        yield cursor
    database.close()


@pytest.mark.plans
@pytest.mark.timeout(300)
@pytest.mark.parametrize("statistics", ["none", "fresh"])
@pytest.mark.parametrize("many", [30_000, 1_000_000])
def test_polling_reads_no_more_pages_with_many_rows(cursor: Cursor[Any], many: int, statistics: str) -> None:
    """The added rows are all older than an hour."""
    _fill(cursor, 1_000, 0, statistics)
    few = _costs(cursor)
    _fill(cursor, many - 1_000, 1_000, statistics)
    for name, cost in _costs(cursor).items():
        print(f"{name:16} {few[name]:5} → {cost:5} pages")
        assert cost <= 2 * few[name] + 10, (name, few[name], cost)


def _fill(cursor: Cursor[Any], count: int, there: int, statistics: str) -> None:
    for statement in _FILL.split(";"):
        cursor.execute(statement.encode(), {"count": count, "there": there})
    if statistics == "fresh":
        for table in ("payment_intents", "payment_attempts", "intent_events", "webhook_deliveries"):
            cursor.execute(f"vacuum analyze {table}".encode())


def _costs(cursor: Cursor[Any]) -> dict[str, int]:
    row = cursor.execute(database.BOUNDS_SQL).fetchone()
    assert row is not None
    values = dict(zip(("now", "hour", "five_minutes", "minute"), row, strict=True))
    values |= {"mode": "live", "suspects": [row[1]], "tried": failing_endpoints.TRIED}
    found = {}
    for name, statement in _STATEMENTS.items():
        with cursor.connection.transaction():
            _explained(cursor, statement, values)  # the first run also reads the catalogs
            plan = _explained(cursor, statement, values)
        scans = [node for node in plan_nodes(plan) if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan")]
        assert all(node["Relation Name"] == "outbox" for node in scans), (name, scans)
        found[name] = plan_buffers(plan)
    return found


def _explained(cursor: Cursor[Any], statement: str, values: dict[str, Any]) -> dict[str, Any]:
    if "%(" in statement:
        return explain(cursor, statement.encode(), values, "mizan_monitor")
    return read_plan(cursor.execute(f"explain (analyze, buffers, format json) {statement}".encode()))

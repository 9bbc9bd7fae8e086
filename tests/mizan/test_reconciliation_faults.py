"""`mizan audit` on damaged data: each damage is found by the right check."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from mizan.reconciliation.checks import CHECKS
from shared.platform.database.pool import Database
from tests.mizan.conftest import Mizan
from tests.mizan.sample_history import SampleHistory


@pytest.fixture
def database(admin_database: Database) -> Database:
    """The superuser's: the tests damage rows, past triggers and foreign keys."""
    return admin_database


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the second check without a delay."""
    monkeypatch.setattr("mizan.reconciliation.checks.RECHECK_DELAYS_S", (0.0,))


@pytest.fixture
def life(database: Database) -> SampleHistory:
    return SampleHistory(database)


class Backup:
    """All rows, to be restored."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.transaction() as connection:
            tables = [name for (name,) in connection.execute(_TABLES)]
            copies = [f"create table backup.{table} as select * from {table}" for table in tables]
            connection.execute(";".join(["create schema backup", *copies]).encode())
        self._restore = ";".join(
            f"delete from {table}; insert into {table} overriding system value select * from backup.{table}"
            for table in tables
        ).encode()

    def restore(self) -> None:
        with self._database.transaction() as connection:
            connection.execute("set local session_replication_role = replica")
            connection.execute(self._restore)


@dataclass(frozen=True)
class Damage:
    """{name} is replaced by an intent of the sample, {name_delivery} by the delivery of its only event."""

    finds: str
    """Names of checks."""
    sql: str


_TABLES = """select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
and not relispartition and relname <> 'alembic_version'"""
_ATTEMPT = """
insert into payment_attempts (intent_uuid, method, provider, state, sent_at, next_verify_at)
values ('{intent}', 'card', 'sandbox', '{state}', mizan_now(), mizan_now())"""

DAMAGES = {
    "the event of a payment is gone": Damage(
        "events_complete delivery_has_event",
        "delete from intent_events where intent_uuid = '{paid}' and type = 'payment_intent.succeeded'",
    ),
    "an event in the middle is gone": Damage(
        "events_complete", "delete from intent_events where intent_uuid = '{paid}' and seq = 2"
    ),
    "the first event is gone": Damage(
        "events_complete", "delete from intent_events where intent_uuid = '{paid}' and seq = 1"
    ),
    "all events of an intent are gone": Damage(
        "events_complete", "delete from intent_events where intent_uuid = '{open}'"
    ),
    "an intent forgot that it changed": Damage(
        "events_complete", "update payment_intents set event_seq = 2 where uuid = '{paid}'"
    ),
    "a change is told twice": Damage(
        "events_once",
        """insert into intent_events (id, intent_uuid, seq, type, at)
           select uuidv7(), intent_uuid, seq, type, at from intent_events where intent_uuid = '{paid}' and seq = 2""",
    ),
    "a second event of a payment": Damage(
        "events_once",
        """update payment_intents set event_seq = event_seq + 1 where uuid = '{paid}';
           insert into intent_events (id, intent_uuid, seq, type, at)
           select uuidv7(), intent_uuid, seq + 1, type, at from intent_events
           where intent_uuid = '{paid}' and type = 'payment_intent.succeeded'""",
    ),
    "an event of no intent": Damage(
        "events_of_intents",
        """insert into intent_events (intent_uuid, seq, type, at)
           values (uuidv7(), 1, 'payment_intent.created', mizan_now())""",
    ),
    "a status that no event tells of": Damage(
        "events_fit_status", "update payment_intents set status = 'canceled' where uuid = '{open}'"
    ),
    "a payment that was rolled back by half": Damage(
        "events_fit_status paid_is_succeeded",
        "update payment_intents set status = 'requires_payment_method' where uuid = '{paid}'",
    ),
    "an impossible story": Damage(
        "events_in_order",
        """update intent_events set type = 'payment_intent.requires_payment_method'
           where intent_uuid = '{paid}' and seq = 2""",
    ),
    "a paid attempt is declined": Damage(
        "succeeded_is_paid", "update payment_attempts set state = 'declined' where intent_uuid = '{paid}'"
    ),
    "a declined attempt is paid": Damage(
        "paid_is_succeeded", "update payment_attempts set state = 'paid' where intent_uuid = '{declined}'"
    ),
    "a duplicate of nothing": Damage(
        "paid_is_succeeded",
        "update payment_attempts set state = 'duplicate' where intent_uuid = '{declined}'",
    ),
    "paid twice": Damage(
        "paid_once",
        "drop index payment_attempts_one_paid; " + _ATTEMPT.format(intent="{paid}", state="paid"),
    ),
    "two under way": Damage(
        "one_open_attempt",
        "drop index payment_attempts_one_in_flight; " + _ATTEMPT.format(intent="{asked_about}", state="sent"),
    ),
    "one awaits a code while another is under way": Damage(
        "one_open_attempt", _ATTEMPT.format(intent="{asked_about}", state="awaiting_code")
    ),
    "processing, and nothing is under way": Damage(
        "processing_has_attempt",
        "update payment_attempts set state = 'abandoned' where intent_uuid = '{undecided}'",
    ),
    "under way, and the intent does not know": Damage(
        "attempt_is_processing", _ATTEMPT.format(intent="{open}", state="sent")
    ),
    "a delivery is gone": Damage(
        "events_delivered", "delete from webhook_deliveries where id = '{pending_delivery}'"
    ),
    "a delivery is gone, its tries are not": Damage(
        "events_delivered tries_complete", "delete from webhook_deliveries where id = '{paid_delivery}'"
    ),
    "a delivery of another intent": Damage(
        "delivery_has_event",
        "update webhook_deliveries set intent_uuid = '{open}' where id = '{pending_delivery}'",
    ),
    "a delivery of another application": Damage(
        "delivery_has_event",
        "update webhook_deliveries set application_id = uuidv7() where id = '{pending_delivery}'",
    ),
    "a delivery of another event": Damage(
        "delivery_has_event",
        "update webhook_deliveries set event = 'payment_intent.succeeded' where id = '{pending_delivery}'",
    ),
    "a delivery of what was not taken in": Damage(
        "delivery_has_event", "update intent_events set taken_in_at = null where id = '{pending_delivery}'"
    ),
    "a second delivery": Damage(
        "deliveries_once delivery_has_event",
        """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, next_due_at)
           select uuidv7(), intent_uuid, application_id, event, url, 1, mizan_now()
           from webhook_deliveries where id = '{paid_delivery}'""",
    ),
    "a try is gone": Damage(
        "tries_complete", "delete from webhook_tries where delivery_id = '{failed_delivery}' and step = 9"
    ),
    "the first try is gone, and not counted": Damage(
        "tries_complete",
        """delete from webhook_tries where delivery_id = '{failed_delivery}' and step = 1;
           update webhook_deliveries set tries = tries - 1 where id = '{failed_delivery}'""",
    ),
    "a step is gone, and others are renumbered": Damage(
        "tries_complete",
        """delete from webhook_tries where delivery_id = '{failed_delivery}' and step = 8;
           update webhook_tries set number = 8 where delivery_id = '{failed_delivery}' and number = 9;
           update webhook_tries set number = 9 where delivery_id = '{failed_delivery}' and number = 10;
           update webhook_deliveries set tries = tries - 1 where id = '{failed_delivery}'""",
    ),
    "a try that nobody counted": Damage(
        "tries_once",
        """insert into webhook_tries (delivery_id, number, resend_id, at, duration_ms, url, status_code)
           values ('{paid_delivery}', 3, uuidv7(), mizan_now(), 5, 'https://x', 500)""",
    ),
    "a step tried twice": Damage(
        "tries_once",
        """alter table webhook_tries drop constraint webhook_tries_delivery_id_step_key;
           update webhook_tries set step = 1 where delivery_id = '{paid_delivery}' and step = 2""",
    ),
    "succeeded without a success": Damage(
        "delivery_fits_tries",
        "update webhook_deliveries set status = 'succeeded', next_due_at = null where id = '{pending_delivery}'",
    ),
    "failed with a success": Damage(
        "delivery_fits_tries", "update webhook_deliveries set status = 'failed' where id = '{paid_delivery}'"
    ),
    "failed before its time": Damage(
        "delivery_fits_tries",
        "update webhook_deliveries set status = 'failed', next_due_at = null where id = '{pending_delivery}'",
    ),
    "a step was skipped": Damage(
        "delivery_fits_tries", "update webhook_deliveries set step = 2 where id = '{pending_delivery}'"
    ),
    "an intent does not expire": Damage(
        "intents_expire",
        "update payment_intents set expires_at = mizan_now() - interval '2 minutes' where uuid = '{open}'",
    ),
    "nobody asks about an attempt": Damage(
        "attempts_asked",
        """update payment_attempts set next_verify_at = mizan_now() - interval '6 minutes'
           where intent_uuid = '{asked_about}'""",
    ),
    "nobody publishes": Damage(
        "outbox_leaves",
        """insert into outbox (topic, key, payload, created_at)
           values ('x', 'y', 'z', mizan_now() - interval '6 minutes')""",
    ),
    "nobody takes an event in": Damage(
        "events_taken_in",
        """delete from webhook_deliveries where id = '{pending_delivery}';
           update intent_events set taken_in_at = null, at = mizan_now() - interval '31 minutes'
           where id = '{pending_delivery}'""",
    ),
    "nobody tries a delivery": Damage(
        "deliveries_tried",
        """update webhook_deliveries set next_due_at = mizan_now() - interval '31 minutes'
           where id = '{pending_delivery}'""",
    ),
}


def test_damage_is_found(run: Mizan, life: SampleHistory, subtests: pytest.Subtests) -> None:
    """Exactly that damage, with exit code 1. Without it nothing is found: each is repaired before the next."""
    intents = {name: value for name, value in vars(life).items() if name not in {"database", "application"}}
    deliveries = {f"{name}_delivery": life.delivery(intents[name]) for name in ("paid", "failed", "pending")}
    backup = Backup(life.database)
    for name, damage in DAMAGES.items():
        with subtests.test(name):
            for statement in damage.sql.format(**intents, **deliveries).split(";"):
                life.run(statement)
            answer = run("audit", "--database-only", "--json")
            said = json.loads(answer.stdout)
            found = {finding["check"] for finding in said["findings"]}
            assert found == set(damage.finds.split()), said["findings"]
            assert {finding["what"] for finding in said["findings"]} == {CHECKS[name].kind for name in found}
            assert (answer.exit_code, said["ok"]) == (1, False)
            assert said["totals"] == dict.fromkeys(found, 1)
        backup.restore()
    assert json.loads(run("audit", "--database-only", "--json").stdout)["ok"]


def test_every_check_of_the_database_has_a_damage() -> None:
    of_database = {
        name for name, check in CHECKS.items() if check.row_kind not in ("charges", "consumer groups")
    }
    assert of_database == {name for damage in DAMAGES.values() for name in damage.finds.split()}


def _json(run: Mizan) -> dict[str, Any]:
    answer = run("audit", "--database-only", "--json")
    said: dict[str, Any] = json.loads(answer.stdout)
    assert answer.exit_code == (0 if said["ok"] else 1)
    return said


def test_report_has_examples_and_totals(run: Mizan, life: SampleHistory) -> None:
    """Up to ten of each check, and a summary in the last line."""
    wrong = [life.pay() for _ in range(12)]
    life.publish()
    life.run("delete from intent_events where seq = 2 and intent_uuid = any(%s)", wrong)
    life.run(
        "update payment_intents set expires_at = mizan_now() - interval '1 hour' where uuid = %s", life.open
    )
    answer = run("audit", "--database-only")
    assert answer.exit_code == 1
    lines = answer.stdout.splitlines()
    assert lines[-1] == "Found: 12 lost, 1 stuck."
    assert sum(line.startswith("  ") and line.split()[0] in map(str, wrong) for line in lines) == 10
    assert "  and 2 more" in lines
    assert any(line.startswith("events_complete") and line.endswith("  12") for line in lines)
    assert any(str(life.open) in line for line in lines)


def test_findings_above_the_limit_are_only_counted(
    run: Mizan, life: SampleHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that badly damaged data fits into memory."""
    monkeypatch.setattr("mizan.reconciliation.checks.MAX_FINDINGS", 3)
    made = [life.create() for _ in range(8)]
    life.run(
        "update payment_intents set expires_at = mizan_now() - interval '1 hour' where uuid = any(%s)", made
    )
    said = _json(run)
    assert len(said["findings"]) == 3
    assert said["totals"] == {"intents_expire": 8}

"""`mizan audit` on consistent data: pending work and dropped months are no findings."""

import json
from functools import partial
from threading import Event, Thread
from typing import Any
from uuid import UUID, uuid4

import pytest

from mizan.reconciliation import report
from mizan.reconciliation.checks import CHECKS, Finding, collect_findings, keep_persistent
from mizan.reconciliation.reconciler import reconcile
from services.dashboard.applications.test_delivery import send_test_delivery
from shared.domain.attempts.states import ProviderAnswer
from shared.domain.deliveries.pause import pause_webhooks
from shared.platform.database.pool import Database
from stack.ports import find_free_ports
from tests.mizan.conftest import Mizan
from tests.mizan.sample_history import URL, SampleApplication, SampleHistory
from tests.scheduler.history import History
from tests.shared.domain.attempts.deciding import LIMIT, Deciding
from tests.waiting import eventually

NONE_WAITING = dict.fromkeys(
    (
        "outbox_rows",
        "events_not_taken_in",
        "deliveries_pending",
        "deliveries_paused",
        "attempts_under_way",
        "attempts_undecided",
        "attempts_left_on_a_page",
        "decisions_to_approve",
        "duplicate_payments",
    ),
    0,
)


@pytest.fixture
def database(admin_database: Database) -> Database:
    """The superuser's: the tests damage rows, past triggers and foreign keys."""
    return admin_database


def audited(run: Mizan) -> dict[str, Any]:
    """Run the audit, which must have no findings, and return its report."""
    answer = run("audit", "--database-only", "--json")
    said: dict[str, Any] = json.loads(answer.stdout)
    assert said["findings"] == []
    assert (answer.exit_code, said["ok"], said["totals"]) == (0, True, {})
    return said


def test_empty_installation_has_no_findings(run: Mizan) -> None:
    assert audited(run)["waiting"] == NONE_WAITING
    assert NONE_WAITING.keys() <= report._NAMES.keys()
    assert run("audit", "--database-only").stdout.endswith(
        "\nNothing is lost, doubled or stuck in the database.\n"
    )


def test_sample_history_has_no_findings(run: Mizan, database: Database) -> None:
    """Paid, declined, expired, paid late, paid twice; delivered, failed, resent, pending."""
    life = SampleHistory(database)
    said = audited(run)
    assert (said["checked"]["intents"], said["checked"]["events"], said["checked"]["deliveries"]) == (
        10,
        29,
        7,
    )
    assert said["waiting"] == {
        **NONE_WAITING,
        "attempts_under_way": 1,
        "attempts_undecided": 1,
        "deliveries_pending": 4,
        "duplicate_payments": 1,
    }
    assert life.run("select count(*) from webhook_tries") == [(said["checked"]["tries"],)]
    text = run("audit", "--database-only").stdout
    assert "1 attempt undecided" in text
    assert "1 duplicate payment" in text


def test_handled_duplicate_is_no_longer_waiting(run: Mizan, database: Database) -> None:
    life = SampleHistory(database)
    life.run(
        "update payment_attempts set handled_at = mizan_now(), handled_note = 'paid back' where state = 'duplicate'"
    )
    assert audited(run)["waiting"]["duplicate_payments"] == 0


def test_decision_that_waits_for_approval_is_counted(
    run: Mizan, database: Database, application_id: UUID
) -> None:
    """Until the provider settles the attempt: then there is nothing left to approve."""
    deciding = Deciding(database, application_id)
    attempt = deciding.attempt(LIMIT + 1, "plutu")
    deciding.propose(attempt)
    assert audited(run)["waiting"]["decisions_to_approve"] == 1
    deciding.notify_paid(attempt)
    assert audited(run)["waiting"]["decisions_to_approve"] == 0


def test_recent_events_and_deliveries_count_as_waiting(run: Mizan, database: Database) -> None:
    """They are in the outbox or not taken in, and not late yet."""
    life = SampleApplication(database)
    life.pay()
    waiting = audited(run)["waiting"]
    assert (waiting["outbox_rows"], waiting["events_not_taken_in"]) == (3, 1)
    life.publish()
    assert audited(run)["waiting"]["deliveries_pending"] == 1


def test_attempt_in_flight_on_a_paid_intent_is_no_finding(run: Mizan, database: Database) -> None:
    """The intent was paid by another attempt; this one is settled when its provider answers."""
    life = SampleApplication(database)
    intent = life.create()
    first = life.attempt(intent, ProviderAnswer.DECLINED)
    life.attempt(intent)
    life.notify(first, ProviderAnswer.PAID)
    assert audited(run)["waiting"]["attempts_under_way"] == 1


def test_late_deliveries_of_a_paused_application_are_no_findings(run: Mizan, database: Database) -> None:
    """Nor for half an hour after it is resumed."""
    life = SampleHistory(database)
    with database.transaction() as connection:
        pause_webhooks(connection, life.application)
    life.run(
        """update webhook_deliveries set next_due_at = mizan_now() - interval '3 hours', set_aside_at = mizan_now()
           where status = 'pending'"""
    )
    assert audited(run)["waiting"]["deliveries_paused"] == 4
    assert run("app", "resume-webhooks", str(life.application)).exit_code == 0
    assert audited(run)["waiting"]["deliveries_pending"] == 4


def test_test_deliveries_are_not_checked(run: Mizan, database: Database) -> None:
    """They have no intent."""
    life = SampleApplication(database)
    ((test,),) = life.run("select uuidv7()")
    with database.transaction() as connection:
        send_test_delivery(connection, life.application, test)
    life.run("delete from outbox")
    life.try_to_deliver(test, 500)
    life.run("update webhook_deliveries set tries = 7, next_due_at = mizan_now() - interval '1 day'")
    assert audited(run)["checked"]["deliveries"] == 0


class TestWithoutUrl:
    """An event that was taken in without a webhook URL has no delivery, and needs none (§6.1)."""

    def test_event_of_an_application_without_a_url_needs_no_delivery(
        self, run: Mizan, database: Database
    ) -> None:
        life = SampleApplication(database, url=None)
        life.pay()
        life.publish()
        assert audited(run)["checked"]["deliveries"] == 0

    def test_event_before_the_first_url_needs_no_delivery(self, run: Mizan, database: Database) -> None:
        life = SampleApplication(database, url=None)
        life.pay()
        life.publish()
        assert run("app", "set-webhook", str(life.application), str(URL)).exit_code == 0
        audited(run)

    def test_event_while_the_url_was_removed_needs_no_delivery(self, run: Mizan, database: Database) -> None:
        """And a delivery that failed for want of a URL is consistent."""
        life = SampleApplication(database)
        queued = life.pay()
        life.publish()
        run("app", "set-webhook", str(life.application), "--none")
        life.pay()
        life.publish()
        life.run(
            """update webhook_deliveries set status = 'failed', next_due_at = null, last_failure = 'no_url'
               where id = %s""",
            life.delivery(queued),
        )
        run("app", "set-webhook", str(life.application), str(URL))
        audited(run)
        life.resend(life.delivery(queued), 500)
        audited(run)
        life.resend(life.delivery(queued), 200)
        audited(run)

    def test_missing_delivery_is_found_if_there_was_certainly_a_url(
        self, run: Mizan, database: Database
    ) -> None:
        """The URL was set long before the event and removed long afterwards."""
        made = json.loads(run("app", "create", "--name", "shop", "--json").stdout)
        life = SampleApplication(database)
        life.application = UUID(made["application_id"])
        run("app", "set-webhook", str(life.application), str(URL))
        lost = life.pay()
        life.publish()
        run("app", "set-webhook", str(life.application), "--none")
        ((event,),) = life.run("delete from webhook_deliveries where intent_uuid = %s returning id", lost)
        audited(run)
        life.run("alter table audit_log disable trigger audit_log_append_only")
        life.run(
            """update audit_log set at = at + case action when 'webhook_url_set' then interval '-1 hour'
                                                 when 'webhook_url_removed' then interval '1 hour'
                                                 else interval '-2 hours' end"""
        )
        said = json.loads(run("audit", "--database-only", "--json").stdout)
        assert [(finding["check"], finding["id"]) for finding in said["findings"]] == [
            ("events_delivered", str(event))
        ]


class TestOldMonths:
    """Once a month of history is dropped, its rows cannot be checked."""

    @pytest.fixture
    def history(self, database: Database) -> History:
        made = History(database)
        made.make(1, 2)
        return made

    def _age(self, life: SampleApplication, intent: UUID, history: History, months: int) -> UUID:
        """Make the intent so many months old, with all but its last event."""
        old = UUID(int=(intent.int & (1 << 80) - 1) | _milliseconds(history, months) << 80)
        for table in ("payment_attempts", "payment_intents"):
            life.run(f"alter table {table} disable trigger all")
        for table, column in (
            ("payment_intents", "uuid"),
            ("intent_events", "intent_uuid"),
            ("payment_attempts", "intent_uuid"),
            ("webhook_deliveries", "intent_uuid"),
        ):
            statement = f"update {table} set {column} = %s where {column} = %s"
            life.run(statement, old, intent)
        life.run(
            """update intent_events set id = overlay(id::text placing left(%s, 13) from 1)::uuid
               where intent_uuid = %s and seq < 3""",
            str(old),
            old,
        )
        return old

    def test_late_payment_is_checked_after_the_first_month_was_dropped(
        self, run: Mizan, database: Database, history: History
    ) -> None:
        """Its last event still exists, and must."""
        life = SampleApplication(database)
        intent = life.pay()
        life.publish()
        old = self._age(life, intent, history, 2)
        audited(run)
        history.take_away(2)
        audited(run)
        life.run("delete from intent_events where intent_uuid = %s", old)
        said = json.loads(run("audit", "--database-only", "--json").stdout)
        assert {finding["check"] for finding in said["findings"]} == {"events_complete", "delivery_has_event"}

    def test_intent_without_events_is_no_finding_if_its_month_was_dropped(
        self, run: Mizan, database: Database, history: History
    ) -> None:
        life = SampleApplication(database)
        intent = life.pay()
        life.publish()
        old = self._age(life, intent, history, 2)
        life.run(
            "update payment_intents set updated_at = updated_at - interval '100 days' where uuid = %s", old
        )
        life.run("delete from intent_events where intent_uuid = %s and seq = 3", old)
        life.run("delete from webhook_deliveries")
        history.take_away(2)
        audited(run)
        history.make(2)
        said = json.loads(run("audit", "--database-only", "--json").stdout)
        assert [finding["check"] for finding in said["findings"]] == ["events_complete"]

    def test_events_before_a_detached_month_are_not_checked(
        self, run: Mizan, database: Database, history: History
    ) -> None:
        life = SampleApplication(database)
        intent = life.pay()
        life.publish()
        self._age(life, intent, history, 2)
        history.detach("intent_events", 1)
        life.run("delete from intent_events where seq = 1")
        audited(run)


def _milliseconds(history: History, months_ago: int) -> int:
    ((text,),) = history.run(
        """select uuid7_floor((date_trunc('month', uuid_extract_timestamp(uuidv7()) at time zone 'UTC')
                               - make_interval(months => %s) + interval '3 days') at time zone 'UTC')::text""",
        months_ago,
    )
    return UUID(text).int >> 80


def test_audit_finds_no_fault_under_load(run: Mizan, database: Database) -> None:
    """Intents are created, paid, expired, published, delivered and resent meanwhile."""
    stop, errors = Event(), list[BaseException]()

    def is_published(life: SampleApplication, intent: UUID) -> bool:
        life.publish()
        return bool(life.run("select id from webhook_deliveries where intent_uuid = %s", intent))

    def work() -> None:
        try:
            life = SampleApplication(database)
            while not stop.is_set():
                paid, expired, waiting = life.pay(), life.create(), life.create()
                life.attempt(waiting, ProviderAnswer.DECLINED)
                life.expire(expired)
                life.attempt(waiting, ProviderAnswer.UNKNOWN, ProviderAnswer.PAID)
                for intent in (paid, expired, waiting):
                    eventually(
                        partial(is_published, life, intent)
                    )  # the other worker may have published its event
                    delivery = life.delivery(intent)
                    life.try_to_deliver(delivery, 500, 200)
                    life.resend(delivery, 200)
        except BaseException as error:
            errors.append(error)
            raise

    workers = [Thread(target=work, daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    seen = [audited(run)["checked"]["tries"] for _ in range(12)]
    stop.set()
    for worker in workers:
        worker.join(30)
    assert errors == []
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_all_queries_see_one_snapshot(database: Database) -> None:
    """Changes during the audit are not seen in part."""
    life = SampleApplication(database)
    life.pay()
    told: list[str] = []

    def meanwhile(what: str) -> None:
        told.append(what)
        life.pay()

    seen = reconcile(database, None, None, meanwhile)
    assert seen.ok
    assert len(told) > 3
    assert (seen.checked["intents"], seen.checked["events"]) == (1, 3)


def test_recheck_clears_findings_that_are_resolved_meanwhile(
    run: Mizan, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler expires the intent between the two checks."""
    life = SampleApplication(database)
    intent = life.create()
    life.run(
        "update payment_intents set expires_at = mizan_now() - interval '1 hour' where uuid = %s", intent
    )
    pauses: list[float] = []

    def meanwhile(pause_s: float) -> None:
        pauses.append(pause_s)
        life.expire(intent)

    monkeypatch.setattr("mizan.reconciliation.checks.sleep", meanwhile)
    audited(run)
    assert len(pauses) == 1


def test_only_findings_of_both_checks_are_kept() -> None:
    """A finding that is new in the second check may be a change in progress."""
    first, second = (Finding(CHECKS["intents_expire"], str(uuid4()), "") for _ in range(2))
    assert keep_persistent(collect_findings([first]), collect_findings([first, second])) == collect_findings(
        [first]
    )
    assert keep_persistent(collect_findings([first]), collect_findings([second])) == collect_findings([])


@pytest.mark.parametrize(
    "more",
    [
        {"DATABASE_URL": "postgresql://mizan:hush@127.0.0.1:{nobody}/x"},
        {"DATABASE_URL": ""},
        {"DATABASE_POOL_SIZE": "none"},
    ],
)
def test_audit_that_cannot_run_is_exit_code_2(run: Mizan, more: dict[str, str]) -> None:
    """Exit code 1 is for findings."""
    nobody = str(find_free_ports(1)[0])
    answer = run(
        "audit",
        "--database-only",
        "--json",
        **{name: value.format(nobody=nobody) for name, value in more.items()},
    )
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr
    assert "hush" not in answer.stderr


def test_outdated_schema_is_exit_code_2(run: Mizan, database: Database) -> None:
    with database.transaction() as connection:
        connection.execute("update alembic_version set version_num = '0001'")
    answer = run("audit", "--database-only")
    assert answer.exit_code == 2
    assert "mizan migrate" in answer.stderr

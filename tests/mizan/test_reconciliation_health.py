"""`mizan audit` on books that are in order: what merely waits, or is no longer there, is no alarm."""

import json
from functools import partial
from threading import Event, Thread
from typing import Any
from uuid import UUID, uuid4

import pytest

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
        "duplicate_payments",
    ),
    0,
)


def audited(run: Mizan) -> dict[str, Any]:
    """Which must be content."""
    answer = run("audit", "--json")
    said: dict[str, Any] = json.loads(answer.stdout)
    assert said["findings"] == []
    assert (answer.exit_code, said["ok"], said["totals"]) == (0, True, {})
    return said


def test_an_empty_installation(run: Mizan) -> None:
    assert audited(run)["waiting"] == NONE_WAITING
    assert run("audit").stdout.endswith("\nNothing is lost, doubled or stuck.\n")


def test_one_of_each(run: Mizan, database: Database) -> None:
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
    text = run("audit").stdout
    assert "1 attempts undecided" in text
    assert "1 duplicate payments" in text


def test_a_handled_duplicate_waits_no_more(run: Mizan, database: Database) -> None:
    life = SampleHistory(database)
    life.run(
        "update payment_attempts set handled_at = mizan_now(), handled_note = 'paid back' where state = 'duplicate'"
    )
    assert audited(run)["waiting"]["duplicate_payments"] == 0


def test_what_has_just_happened_waits(run: Mizan, database: Database) -> None:
    """In the outbox, not taken in, and nobody is late yet."""
    life = SampleApplication(database)
    life.pay()
    waiting = audited(run)["waiting"]
    assert (waiting["outbox_rows"], waiting["events_not_taken_in"]) == (3, 1)
    life.publish()
    assert audited(run)["waiting"]["deliveries_pending"] == 1


def test_paid_by_another_attempt_while_one_is_under_way(run: Mizan, database: Database) -> None:
    """The intent is succeeded, and the other one is settled when its provider answers."""
    life = SampleApplication(database)
    intent = life.create()
    first = life.attempt(intent, ProviderAnswer.DECLINED)
    life.attempt(intent)
    life.notify(first, ProviderAnswer.PAID)
    assert audited(run)["waiting"]["attempts_under_way"] == 1


def test_a_paused_application_may_be_late(run: Mizan, database: Database) -> None:
    """And for half an hour after it is resumed."""
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


def test_tests_of_an_endpoint_are_left_out(run: Mizan, database: Database) -> None:
    """There is no such intent, and their books are nobody's."""
    life = SampleApplication(database)
    ((test,),) = life.run("select uuidv7()")
    with database.transaction() as connection:
        send_test_delivery(connection, life.application, test)
    life.run("delete from outbox")
    life.try_to_deliver(test, 500)
    life.run("update webhook_deliveries set tries = 7, next_due_at = mizan_now() - interval '1 day'")
    assert audited(run)["checked"]["deliveries"] == 0


class TestWithoutUrl:
    """An event that was taken in while there was no URL has no delivery, and needs none (§6.1)."""

    def test_never_one(self, run: Mizan, database: Database) -> None:
        life = SampleApplication(database, url=None)
        life.pay()
        life.publish()
        assert audited(run)["checked"]["deliveries"] == 0

    def test_not_yet_one(self, run: Mizan, database: Database) -> None:
        life = SampleApplication(database, url=None)
        life.pay()
        life.publish()
        assert run("app", "set-webhook", str(life.application), str(URL)).exit_code == 0
        audited(run)

    def test_one_was_removed_and_set_again(self, run: Mizan, database: Database) -> None:
        """Long enough ago; and what ended for want of it has ended rightly."""
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

    def test_there_was_one_by_then(self, run: Mizan, database: Database) -> None:
        """Said when it is sure: it was set long before and removed only long afterwards."""
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
        said = json.loads(run("audit", "--json").stdout)
        assert [(finding["check"], finding["id"]) for finding in said["findings"]] == [
            ("events_delivered", str(event))
        ]


class TestOldMonths:
    """Where a month of history was dropped, nothing can be said of what was in it."""

    @pytest.fixture
    def history(self, database: Database) -> History:
        made = History(database)
        made.make(1, 2)
        return made

    def _age(self, life: SampleApplication, intent: UUID, history: History, months: int) -> UUID:
        """As if it had been made so many months ago, with all but its last event."""
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

    def test_paid_late_after_its_first_month_is_gone(
        self, run: Mizan, database: Database, history: History
    ) -> None:
        """Its last event is still there, and must be."""
        life = SampleApplication(database)
        intent = life.pay()
        life.publish()
        old = self._age(life, intent, history, 2)
        audited(run)
        history.take_away(2)
        audited(run)
        life.run("delete from intent_events where intent_uuid = %s", old)
        said = json.loads(run("audit", "--json").stdout)
        assert {finding["check"] for finding in said["findings"]} == {"events_complete", "delivery_has_event"}

    def test_all_of_it_is_gone(self, run: Mizan, database: Database, history: History) -> None:
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
        said = json.loads(run("audit", "--json").stdout)
        assert [finding["check"] for finding in said["findings"]] == ["events_complete"]

    def test_a_month_that_somebody_keeps_elsewhere(
        self, run: Mizan, database: Database, history: History
    ) -> None:
        """Behind a gap nothing is sure."""
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


def test_while_others_are_at_work(run: Mizan, database: Database) -> None:
    """Intents are made, paid, expired, published, delivered and resent, and no look at it sees a fault."""
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
                    eventually(partial(is_published, life, intent))  # the other worker may have its event
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


def test_all_that_is_asked_is_of_one_moment(database: Database) -> None:
    """What others do while it looks is not seen by half."""
    life = SampleApplication(database)
    life.pay()
    told: list[str] = []

    def meanwhile(what: str) -> None:
        told.append(what)
        life.pay()

    seen = reconcile(database, None, meanwhile)
    assert seen.ok
    assert len(told) > 3
    assert (seen.checked["intents"], seen.checked["events"]) == (1, 3)


def test_a_second_look_clears_what_was_only_under_way(
    run: Mizan, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler comes by between the two."""
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


def test_still_there() -> None:
    """What is found later, but was not before, is another thing's beginning."""
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
def test_where_nobody_can_look(run: Mizan, more: dict[str, str]) -> None:
    """Exit code 2, which is not "something is wrong"."""
    nobody = str(find_free_ports(1)[0])
    answer = run("audit", "--json", **{name: value.format(nobody=nobody) for name, value in more.items()})
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr
    assert "hush" not in answer.stderr


def test_an_older_schema_is_not_looked_at(run: Mizan, database: Database) -> None:
    with database.transaction() as connection:
        connection.execute("update alembic_version set version_num = '0001'")
    answer = run("audit")
    assert answer.exit_code == 2
    assert "mizan migrate" in answer.stderr

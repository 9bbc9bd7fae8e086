"""`mizan audit` against the sandbox's ledger: every charge is recorded here, and every payment was charged."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog

from mizan.reconciliation.charges import (
    LedgerUnavailableError,
    RecordedAttempt,
    SandboxCharge,
    SandboxLedger,
    check_attempt,
    pair_by_attempt,
)
from mizan.reconciliation.checks import CHECKS
from services.checkout.dependencies import open_database
from services.scheduler.jobs.expiry import IntentExpiry
from services.scheduler.jobs.relay import OutboxRelay
from shared.domain.applications.registry import NewApplication
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.intent import Intent
from shared.platform.database.pool import Database
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.outbound_url import check_webhook_url
from shared.platform.settings import SandboxSettings, Settings, WebhookSettings
from tests.checkout.test_http_client import listening, with_body
from tests.checkout.world import CheckoutWorld
from tests.database_roles import as_role
from tests.mizan.conftest import KEY, Mizan
from tests.sandbox.running_sandbox import SECRET, RunningSandbox
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import eventually
from tests.webhooks.conftest import Webhooks
from tests.webhooks.receivers import Receiver, Reply

DELAYS = (0.05,) * 8
PAYS, DECLINES, PAYS_LATE, ASKS = (
    "4242424242424242",
    "4000000000000002",
    "4000000000000259",
    "6395043835180860",
)


@pytest.fixture(scope="module")
def running_bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSandbox]:
    made = RunningSandbox(tmp_path_factory.mktemp("bank"))
    with made.running():
        yield made


@pytest.fixture
def bank(running_bank: RunningSandbox) -> RunningSandbox:
    """Return the sandbox with an empty ledger, because charges of other tests would be unknown here."""
    with closing(sqlite3.connect(running_bank.ledger, timeout=10)) as connection, connection:
        for table in ("notifications", "judged_codes", "charges"):
            connection.execute(f"delete from {table}")
    return running_bank


@pytest.fixture
def world(settings: Settings, database: Database, bank: RunningSandbox) -> Iterator[CheckoutWorld]:
    webhooks = WebhookSettings(retry_delays=DELAYS, allow_private=True)
    settings = replace(settings, secret_keys=(KEY,), webhooks=webhooks)
    with closing(open_database(as_role("mizan_checkout", settings.database))) as service_database:
        made = CheckoutWorld(settings, database, service_database, bank)
        # The checkout runs in this process: its log must not mix with the output of the command.
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        with made.serve():
            yield made
        made.close()
        structlog.reset_defaults()


@pytest.fixture
def audit(run: Mizan, bank: RunningSandbox) -> Mizan:
    def call(*words: str) -> Any:
        return run(
            "audit",
            "--database-only",
            *words,
            SANDBOX_URL=f"http://127.0.0.1:{bank.port}",
            SANDBOX_SECRET=SECRET,
        )

    return call


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mizan.reconciliation.checks.RECHECK_DELAYS_S", (0.0,))


def content(audit: Mizan) -> dict[str, Any]:
    answer = audit("--json")
    said: dict[str, Any] = json.loads(answer.stdout)
    assert (said["findings"], said["not_checked"], answer.exit_code) == ([], None, 0)
    return said


def findings(audit: Mizan) -> set[tuple[str, str]]:
    answer = audit("--json")
    assert answer.exit_code == 1
    return {(finding["check"], finding["id"]) for finding in json.loads(answer.stdout)["findings"]}


def write(bank: RunningSandbox, statement: str, *values: object) -> None:
    """Change the ledger directly, without the sandbox."""
    with closing(sqlite3.connect(bank.ledger, timeout=10)) as connection, connection:
        assert connection.execute(statement, [str(value) for value in values]).rowcount > 0


def paid(world: CheckoutWorld, number: str = PAYS) -> tuple[Intent, UUID]:
    """Return an intent that was paid, or tried, with this card, and its attempt."""
    intent = world.make_intent()
    world.customer(intent).pay_by_card(number)
    return intent, world.attempt_ids(intent)[-1]


@pytest.mark.usefixtures("all_topics")
@pytest.mark.timeout(240)
def test_audit_finds_no_fault_after_all_kinds_of_payments_and_deliveries(
    audit: Mizan, run: Mizan, world: CheckoutWorld
) -> None:
    """Paid, declined, by code, late, twice, expired; delivered, failed, resent: by the services themselves."""
    stop = Event()
    with ExitStack() as stack:
        good = stack.enter_context(Receiver())
        bad = stack.enter_context(Receiver(Reply(500)))
        shops = [
            world.make_application(
                NewApplication("shop", webhook_url=check_webhook_url(receiver.url, allow_private=True))
            ).id
            for receiver in (good, bad)
        ]
        scheduler = as_role("mizan_scheduler", world.settings.database)
        relay = OutboxRelay(scheduler, ConfirmingProducer(world.settings.kafka, "relay"), stop)
        stack.enter_context(running_jobs(relay, IntentExpiry(world.scheduler_database), stop=stop))
        stack.enter_context(Webhooks(world.settings).running())
        intents = []
        for shop in shops:
            for number in (PAYS, DECLINES, ASKS, PAYS_LATE):
                intents.append(intent := world.make_intent(application_id=shop))
                customer = world.customer(intent)
                customer.pay_by_card(number)
                if number == ASKS:
                    customer.enter_code("222222")
                    customer.enter_code("111111")
                if number == PAYS_LATE:
                    customer.open()
                    customer.pay_by_card(PAYS)
                    world.bank.settle(world.charges(intent)[0], "paid")
            expired = world.make_intent(application_id=shop)
            _, late = world.customer(expired).pay_by_card(PAYS_LATE), world.charges(expired)[0]
            world.rows(
                "update payment_intents set expires_at = mizan_now() where uuid = %s returning 1",
                expired.uuid,
            )
            eventually(lambda expired=expired: world.status(expired) == "canceled")  # type: ignore[misc]
            world.bank.settle(late, "paid")
            assert world.status(expired) == "succeeded"
        eventually(lambda: _deliveries(world) == {"succeeded": 5, "failed": 5})
        bad.answer = Reply(200)
        for (delivery,) in world.rows("select id from webhook_deliveries where status = 'failed' limit 2"):
            assert run("resend", str(delivery)).exit_code == 0
        eventually(lambda: _deliveries(world) == {"succeeded": 7, "failed": 3})
        eventually(lambda: world.rows("select count(*) from outbox") == [(0,)])
        said = content(audit)
    assert said["checked"]["charges"] == 12
    assert said["checked"]["tries"] == 5 + 45 + 2
    assert {what: number for what, number in said["waiting"].items() if number} == {"duplicate_payments": 2}


def _deliveries(world: CheckoutWorld) -> dict[str, int]:
    return dict(world.rows("select status, count(*) from webhook_deliveries group by 1"))


def test_audit_finds_no_fault_while_customers_pay(audit: Mizan, world: CheckoutWorld) -> None:
    """Database and ledger change between two queries."""
    stop, errors = Event(), list[BaseException]()

    def pay() -> None:
        try:
            while not stop.is_set():
                intent = world.make_intent()
                customer = world.customer(intent)
                customer.pay_by_card(PAYS_LATE)
                customer.pay_by_wallet("adfali", "0921234567")
                customer.enter_code("1111")
                world.bank.settle(world.charges(intent)[0], "paid")
                customer.close()
        except BaseException as error:
            errors.append(error)
            raise

    customers = [Thread(target=pay, daemon=True) for _ in range(3)]
    for customer in customers:
        customer.start()
    seen = [content(audit)["checked"]["charges"] for _ in range(8)]
    stop.set()
    for customer in customers:
        customer.join(30)
    assert errors == []
    assert seen[-1] > seen[0]


@pytest.mark.usefixtures("at_once")
class TestDamage:
    def test_charge_of_a_declined_attempt_is_found(self, audit: Mizan, world: CheckoutWorld) -> None:
        _, attempt = paid(world, DECLINES)
        write(world.bank, "update charges set status = 'paid', reason = null where attempt = ?", attempt)
        assert findings(audit) == {("charges_paid", str(attempt))}

    @pytest.mark.parametrize(
        "statement",
        ["update charges set status = 'declined' where attempt = ?", "delete from charges where attempt = ?"],
    )
    def test_paid_attempt_without_a_charge_is_found(
        self, audit: Mizan, world: CheckoutWorld, statement: str
    ) -> None:
        """The ledger has it as declined, or not at all."""
        _, attempt = paid(world)
        paid(world)
        write(world.bank, statement, attempt)
        assert findings(audit) == {("payments_charged", str(attempt))}

    @pytest.mark.parametrize(
        "statement",
        [
            "update charges set amount = 1 where attempt = ?",
            "update charges set method = 'sadad' where attempt = ?",
            "update charges set intent = '01900000-0000-7000-8000-000000000000' where attempt = ?",
        ],
    )
    def test_charge_with_another_amount_method_or_intent_is_found(
        self, audit: Mizan, world: CheckoutWorld, statement: str
    ) -> None:
        _, attempt = paid(world)
        write(world.bank, statement, attempt)
        assert findings(audit) == {("charges_fit", str(attempt))}

    def test_charge_of_a_lost_attempt_is_found(self, audit: Mizan, world: CheckoutWorld) -> None:
        """As after an old backup was restored."""
        intent, attempt = paid(world)
        world.rows("delete from payment_attempts where id = %s returning 1", attempt)
        assert findings(audit) == {("charges_known", str(attempt)), ("succeeded_is_paid", str(intent.uuid))}

    def test_charges_made_by_hand_are_no_findings(self, audit: Mizan, world: CheckoutWorld) -> None:
        """Their ids are not ours, whether they sort first or last in the ledger."""
        for first_byte in (b"\x00", b"\xff"):
            world.bank.charge(attempt=str(UUID(bytes=first_byte + uuid4().bytes[1:], version=4)))
        assert content(audit)["checked"]["charges"] == 1

    def test_paid_charge_of_an_attempt_in_flight_is_no_finding(
        self, audit: Mizan, world: CheckoutWorld
    ) -> None:
        _, attempt = paid(world)
        world.rows(
            """with taken_back as (update payment_attempts set state = 'unknown', next_verify_at = mizan_now()
                                  where id = %s returning intent_uuid)
               update payment_intents set status = 'processing', event_seq = 2 from taken_back
               where uuid = intent_uuid returning 1""",
            attempt,
        )
        world.rows("delete from intent_events where seq = 3 returning 1")
        assert content(audit)["waiting"]["attempts_under_way"] == 1


def test_audit_reads_all_pages_of_ledger_and_attempts(audit: Mizan, world: CheckoutWorld) -> None:
    intent, _ = paid(world)
    with closing(sqlite3.connect(world.bank.ledger, timeout=10)) as ledger, ledger:
        for _ in range(1005):
            row = world.rows(
                """insert into payment_attempts (intent_uuid, method, provider, state)
                   values (%s, 'card', 'sandbox', 'declined') returning id::text""",
                intent.uuid,
            )[0]
            ledger.execute(
                """insert into charges select null, ?, ?, intent, method, amount, currency, notify_url, script,
                                       'declined', 'declined', created_at, updated_at from charges where number = 1""",
                (f"ch_{row[0]}", row[0]),
            )
    assert content(audit)["checked"]["charges"] == 1006


def test_unreachable_ledger_is_exit_code_2(run: Mizan, world: CheckoutWorld) -> None:
    """Findings in the database are still reported; without one, the exit code says that not all was checked."""
    _, attempt = paid(world)
    away = {"SANDBOX_URL": "http://127.0.0.1:1", "SANDBOX_SECRET": SECRET}
    answer = run("audit", "--database-only", "--json", **away)
    said = json.loads(answer.stdout)
    assert (answer.exit_code, said["ok"], said["findings"]) == (2, False, [])
    assert "ledger cannot be read" in said["not_checked"]
    assert (
        "not everything was checked: the sandbox's ledger"
        in run("audit", "--database-only", **away).stdout.splitlines()[-1]
    )
    world.rows("delete from payment_attempts where id = %s returning 1", attempt)
    assert run("audit", "--database-only", **away).exit_code == 1
    assert run("audit", "--database-only").exit_code == 1


@pytest.mark.parametrize(
    "page", [b'{"charges": ' + b"[" * 20_000, b'{"charges": [], "charges": []}', b"\xff"]
)
def test_ledger_that_is_not_usable_json_cannot_be_read(page: bytes) -> None:
    with (
        listening(with_body(page)) as url,
        closing(SandboxLedger(SandboxSettings(url, SECRET))) as ledger,
        pytest.raises(LedgerUnavailableError, match="the sandbox's ledger cannot be read"),
    ):
        ledger.of_attempt(uuid4())


def test_stack_file_names_the_sandbox(run: Mizan, world: CheckoutWorld, tmp_path: Path) -> None:
    """Only STACK_DIR is needed."""
    paid(world)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    stack = {
        "sandbox_url": f"http://127.0.0.1:{world.bank.port}",
        "sandbox_secret_file": str(tmp_path / "secret"),
    }
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    # The values of the file go into the environment of this call only.
    said = run("audit", "--database-only", "--json", SANDBOX_URL=None, SANDBOX_SECRET_FILE=None)
    assert json.loads(said.stdout)["checked"]["charges"] == 1


ID = UUID("01900000-0000-7000-8000-000000000001")
INTENT = UUID("01900000-0000-7000-8000-000000000002")


def _charge(status: str, id_: str = "ch_1", attempt: UUID = ID) -> SandboxCharge:
    return SandboxCharge(id_, attempt, INTENT, 5000, "LYD", "card", status)


def _attempt(state: AttemptState, id_: UUID = ID) -> RecordedAttempt:
    return RecordedAttempt(id_, INTENT, state, "card", 5000, "LYD")


def test_every_pair_of_attempt_state_and_charge_status() -> None:
    """Settled attempts must match their charges; attempts in flight are left to verification."""
    charged = {AttemptState.PAID, AttemptState.DUPLICATE}
    under_way = {AttemptState.SENT, AttemptState.UNKNOWN}
    for state in AttemptState:
        for status in ("paid", "declined", "needs_code", None):
            found = check_attempt((ID, _attempt(state), [_charge(status)] if status else []))
            expected = None
            if state in charged and status != "paid":
                expected = "payments_charged"
            elif state not in charged | under_way and status == "paid":
                expected = "charges_paid"
            assert (found and found.check.name) == expected, (state, status)


def test_two_charges_of_one_attempt_are_found() -> None:
    twice = [_charge("paid"), _charge("paid", "ch_2")]
    found = check_attempt((ID, _attempt(AttemptState.PAID), twice))
    assert found is not None
    assert found.check is CHECKS["charges_once"]


def test_attempts_and_charges_are_paired_by_attempt_id() -> None:
    """Whichever side has more, and wherever the other has none."""
    ids = [UUID(int=number) for number in range(6)]
    ours = [_attempt(AttemptState.PAID, ids[n]) for n in (0, 2, 3, 5)]
    theirs = [_charge("paid", f"ch_{n}", ids[n]) for n in (1, 2, 2, 4, 5)]
    pairs = [(id_.int, bool(ours), len(theirs)) for id_, ours, theirs in pair_by_attempt(ours, theirs)]
    assert pairs == [(0, True, 0), (1, False, 1), (2, True, 2), (3, True, 0), (4, False, 1), (5, True, 1)]

"""`mizan trigger`: with the real API, checkout and expiry job, and the sandbox as a real process."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from uuid import UUID, uuid4

import pytest
from click.testing import Result

from services.scheduler.jobs.expiry import IntentExpiry
from shared.domain.applications.registry import NewApplication
from shared.domain.intents.intent import Intent
from shared.domain.intents.store import find_intent
from shared.domain.payment_methods import PaymentMethod
from stack.ports import find_free_ports
from tests.checkout.world import CheckoutWorld
from tests.mizan.conftest import Mizan
from tests.sandbox.running_sandbox import SECRET
from tests.scheduler.running_jobs import running_jobs
from tests.waiting import eventually

_CREATED_WITH_EXPIRY = """
select uuid, extract(epoch from expires_at - created_at)::int from payment_intents
where status = 'requires_payment_method' and expires_at < mizan_now() + interval '6 minutes'"""
_DECLINED = "select 1 from payment_attempts where intent_uuid = %s and state = 'declined'"
_MAKE_DUE = "update payment_intents set expires_at = mizan_now() where uuid = %s returning 1"
_CREDENTIALS = "select kind from credentials where application_id = %s and revoked_at is null order by kind"


@pytest.fixture
def trigger(run: Mizan, pages: CheckoutWorld, api_url: str) -> Mizan:
    """Run `mizan trigger … --app` of the application of the pages, with the settings of a stack with a sandbox."""

    def call(event: str, *words: str, **more: str) -> Result:
        given = {
            "SANDBOX_SECRET": SECRET,
            "SANDBOX_URL": pages.bank.url,
            "API_PUBLIC_URL": api_url,
            "CHECKOUT_PUBLIC_URL": pages.url,
        }
        app = () if "--app" in words else ("--app", str(pages.application.id))
        return run("trigger", event, *app, *words, **{**given, **more})

    return call


@contextmanager
def five_minutes_pass(pages: CheckoutWorld, *, after_decline: bool) -> Iterator[list[int]]:
    """Run the expiry job, and make the intent due as soon as it waits. Yields its lifetimes in seconds."""
    lifetimes: list[int] = []

    def make_due() -> None:
        uuid, lifetime = eventually(lambda: pages.rows(_CREATED_WITH_EXPIRY))[0]
        if after_decline:
            eventually(lambda: pages.rows(_DECLINED, uuid))
        lifetimes.append(lifetime)
        pages.rows(_MAKE_DUE, uuid)

    thread = Thread(target=make_due, daemon=True)
    with running_jobs(IntentExpiry(pages.scheduler_database)):
        thread.start()
        yield lifetimes
        thread.join(60)


def _intent(pages: CheckoutWorld, answer: Result) -> Intent:
    assert answer.exit_code == 0, answer.output
    with pages.database.cursor() as cursor:
        found = find_intent(cursor, UUID(json.loads(answer.stdout)["uuid"]))
    assert found is not None
    assert json.loads(answer.stdout) == {"uuid": str(found.uuid), "status": found.status}
    return found


def test_succeeded_intent_is_created_through_the_api_and_paid(pages: CheckoutWorld, trigger: Mizan) -> None:
    """Its application's own credentials stay, and the short-lived ones are revoked."""
    own = pages.rows(_CREDENTIALS, pages.application.id)
    intent = _intent(pages, trigger("payment_intent.succeeded", "--json"))
    assert (intent.status, intent.application_id) == ("succeeded", pages.application.id)
    assert pages.events(intent)[-1] == "succeeded"
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]
    assert pages.rows(_CREDENTIALS, pages.application.id) == own
    logged = pages.rows(
        "select action from audit_log where application_id = %s order by id", pages.application.id
    )
    assert [row[0] for row in logged] == ["credential_issued"] * 2 + ["credential_revoked"] * 2


def test_prefix_of_the_event_may_be_left_out(pages: CheckoutWorld, trigger: Mizan) -> None:
    answer = trigger("succeeded")
    assert answer.exit_code == 0, answer.output
    assert "succeeded" in answer.stdout


def test_canceled_intent_has_expired_unpaid(pages: CheckoutWorld, trigger: Mizan) -> None:
    """It has the shortest lifetime that the API allows, and the scheduler cancels it."""
    with five_minutes_pass(pages, after_decline=False) as lifetimes:
        answer = trigger("payment_intent.canceled", "--json")
    intent = _intent(pages, answer)
    assert "expires in 5 minutes; waiting" in answer.stderr
    assert 300 < lifetimes[0] < 310
    assert intent.status == "canceled"
    assert pages.events(intent) == ["created", "canceled"]
    assert not pages.charges(intent)


def test_late_intent_is_canceled_and_then_succeeds(pages: CheckoutWorld, trigger: Mizan) -> None:
    """By the sandbox's signed notification, after the expiry (§3)."""
    with five_minutes_pass(pages, after_decline=True):
        answer = trigger("payment_intent.late", "--json")
    intent = _intent(pages, answer)
    assert intent.status == "succeeded"
    assert pages.events(intent)[-2:] == ["canceled", "succeeded"]
    assert [charge["status"] for charge in pages.charges(intent)] == ["paid"]


def test_application_without_cards_cannot_be_paid(pages: CheckoutWorld, trigger: Mizan) -> None:
    """A late payment fails at once, and not after five minutes."""
    wallets = pages.make_application(NewApplication("wallets", methods=frozenset({PaymentMethod.ADFALI})))
    for event in ("payment_intent.succeeded", "payment_intent.late"):
        answer = trigger(event, "--app", str(wallets.id))
        assert answer.exit_code == 1
        assert "this intent can only be paid by adfali" in answer.stderr


def test_refusals_are_clear(pages: CheckoutWorld, trigger: Mizan) -> None:
    nowhere = f"http://127.0.0.1:{find_free_ports(1)[0]}"
    event = "payment_intent.succeeded"
    assert trigger("payment_intent.refunded").exit_code == 2
    for answer, told in (
        (trigger(event, "--app", "shop"), "APP must be an application's id"),
        (trigger(event, "--app", str(uuid4())), "there is no application"),
        (trigger(event, SANDBOX_SECRET=""), "this stack has no sandbox"),
        (trigger(event, API_PUBLIC_URL=nowhere), f"the API at {nowhere} cannot be reached"),
        (trigger(event, API_PUBLIC_URL=pages.url), f"the API at {pages.url} "),
        (trigger(event, CHECKOUT_PUBLIC_URL=nowhere), f"the checkout at {nowhere} cannot be reached"),
    ):
        assert answer.exit_code == 1
        assert told in answer.stderr
    assert pages.rows(_CREDENTIALS, pages.application.id) == [("access_token",), ("api_key",)]

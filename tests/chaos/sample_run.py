"""A small history in which everything is as the spec says: each outcome of a payment, an expiry, a late payment,
retries, a roll, a change of the URL, a resend, a pause, a kill and a jump of the clock. Tests then damage it.
"""

from dataclasses import replace

from chaos.history import (
    AuditEnded,
    ChargeSettledLate,
    ClockMoved,
    CreateAnswered,
    DuplicateReported,
    FaultBegan,
    FaultEnded,
    LoadStopped,
    OutboxCounted,
    Record,
    ResendRequested,
    RunStarted,
    SecretRolled,
    SettlingEnded,
    WebhooksPaused,
    WebhookUrlChanged,
)
from tests.chaos.run_builder import (
    AMOUNT,
    CANCELED,
    DELAYS,
    JUMP,
    JUMP_AT,
    START,
    SUCCEEDED,
    RunBuilder,
    delivery_id,
)

OLD, NEW = "whsec_alpha_1", "whsec_alpha_2"
ALPHA_URL, ALPHA_NEW_URL = "https://alpha.test/hook", "https://alpha.test/new"


def build_sample() -> list[Record]:
    """Return a history that breaks no rule."""
    run = RunBuilder()
    run.add(
        RunStarted(
            at=START,
            seed=7,
            seconds=400,
            brokers=3,
            retry_delays=DELAYS,
            settle_seconds=60,
            commit="0123abc",
        )
    )
    run.register("alpha", ALPHA_URL, OLD)
    run.register("beta", "https://beta.test/hook", "whsec_beta")
    run.register("dead", "https://dead.test/hook", "whsec_dead", lives=False)
    run.register("silent", None, "whsec_silent")
    run.register("paused", "https://paused.test/hook", "whsec_paused")
    _add_settings(run)
    _add_alpha(run)
    _add_beta(run)
    _add_others(run)
    _add_faults(run)
    _add_end(run)
    return run.records


def _add_settings(run: RunBuilder) -> None:
    run.add(SecretRolled(at=START + 41, began_at=START + 40, application="alpha", secret=NEW))
    run.add(
        WebhookUrlChanged(
            at=START + 51,
            began_at=START + 50,
            application="alpha",
            webhook_url=ALPHA_NEW_URL,
            acknowledged=True,
        )
    )
    run.add(
        WebhooksPaused(at=START + 21, began_at=START + 20, application="beta", paused=True, acknowledged=True)
    )
    run.add(
        WebhooksPaused(
            at=START + 31, began_at=START + 30, application="beta", paused=False, acknowledged=True
        )
    )
    run.add(
        WebhooksPaused(
            at=START + 149, began_at=START + 148, application="paused", paused=True, acknowledged=True
        )
    )
    run.add(
        ResendRequested(
            at=START + 60.5,
            began_at=START + 60,
            application="alpha",
            delivery=delivery_id("card", SUCCEEDED),
            acknowledged=True,
        )
    )


def _add_alpha(run: RunBuilder) -> None:
    run.pay("alpha", "card", 10)
    run.create("alpha", "card", 10, 200)
    repeated = run.records.pop()
    assert isinstance(repeated, CreateAnswered)
    run.add(replace(repeated, amount=AMOUNT + 1, expires_at=START + 1000))
    run.receive("alpha", "card", SUCCEEDED, 13, secret=OLD, url=ALPHA_URL)
    run.receive("alpha", "card", SUCCEEDED, 61, secret=NEW, url=ALPHA_NEW_URL)
    run.list_delivery("alpha", "card", SUCCEEDED, "succeeded", [(12.9, "200", True), (60.9, "200", False)])
    run.pay("alpha", "retried", 20)
    run.deliver("alpha", "retried", SUCCEEDED, [(22.5, "500"), (23.6, "close"), (25.8, "200")], secret=OLD)
    run.pay("alpha", "across-roll", 36)
    run.deliver("alpha", "across-roll", SUCCEEDED, [(38.6, "302"), (42, "200")], secret=OLD)
    run.pay("alpha", "after-roll", 43)
    run.deliver("alpha", "after-roll", SUCCEEDED, [(45.6, "200")], secret=NEW)
    run.pay("alpha", "after-url", 53)
    run.deliver("alpha", "after-url", SUCCEEDED, [(55.6, "200")], secret=NEW, url=ALPHA_NEW_URL)
    run.create("alpha", "open", 310)
    run.retrieve("alpha", "open", 432, run.seen("open", "requires_payment_method", 310, 310))


def _add_beta(run: RunBuilder) -> None:
    run.create("beta", "code", 68)
    run.click("code", 70, "code", script="asks_for_code")
    run.click("code", 72, "paid", click="code")
    run.charge("code", "paid")
    run.retrieve("beta", "code", 431, run.seen("code", "succeeded", 68, 72.4))
    run.deliver("beta", "code", SUCCEEDED, [(73, "200")], secret="whsec_beta")

    run.create("beta", "twice", 74)
    run.click("twice", 75, "declined", script="declines")
    run.click("twice", 76, "paid")
    run.add(
        ChargeSettledLate(
            at=START + 79, began_at=START + 78, uuid="twice", charge="charge-7", acknowledged=True
        )
    )
    duplicate = run.charge("twice", "paid")
    run.charge("twice", "paid")
    run.add(DuplicateReported(at=START + 437, uuid="twice", attempt=duplicate))
    run.retrieve("beta", "twice", 431, run.seen("twice", "succeeded", 74, 76.4))
    run.deliver("beta", "twice", SUCCEEDED, [(77, "200")], secret="whsec_beta")

    run.create("beta", "unanswered", 80)
    run.click("unanswered", 81, None, script="pays_in_silence")
    run.charge("unanswered", "paid")
    run.retrieve("beta", "unanswered", 92, run.seen("unanswered", "processing", 80, 81.1))
    run.retrieve("beta", "unanswered", 431, run.seen("unanswered", "succeeded", 80, 95))
    run.deliver("beta", "unanswered", SUCCEEDED, [(96, "200")], secret="whsec_beta")

    run.create("beta", "late", 98)
    run.click("late", 99, "declined", script="declines")
    run.charge("late", "paid")
    run.retrieve("beta", "late", 305, run.seen("late", "canceled", 98, 301))
    run.deliver("beta", "late", CANCELED, [(302, "200")], secret="whsec_beta")
    run.add(
        ChargeSettledLate(
            at=START + 321, began_at=START + 320, uuid="late", charge="charge-10", acknowledged=True
        )
    )
    run.retrieve("beta", "late", 431, run.seen("late", "succeeded", 98, 321))
    run.deliver("beta", "late", SUCCEEDED, [(322, "200")], secret="whsec_beta")

    # Its worker was killed after the first request, so it was sent again.
    run.pay("beta", "repeated", 104)
    run.receive("beta", "repeated", SUCCEEDED, 107, secret="whsec_beta", url="https://beta.test/hook")
    run.deliver("beta", "repeated", SUCCEEDED, [(109, "200")], secret="whsec_beta")

    # The answer was lost, but the intent was created, and expires unknown to its merchant.
    run.create("beta", "unknown", 110, None)
    run.deliver("beta", "unknown", CANCELED, [(303, "200")], secret="whsec_beta")


def _add_others(run: RunBuilder) -> None:
    run.create("alpha", "declined", 120)
    run.click("declined", 121, "declined", script="lacks_funds")
    run.charge("declined", "declined")
    run.retrieve("alpha", "declined", 122, run.seen("declined", "requires_payment_method", 120, 121.2))
    run.click("declined", 306, "expired")
    run.retrieve("alpha", "declined", 431, run.seen("declined", "canceled", 120, 301))
    run.deliver("alpha", "declined", CANCELED, [(302.5, "200")], secret=NEW, url=ALPHA_NEW_URL)

    run.pay("dead", "undeliverable", 130)
    begins = [132.5]
    for delay in DELAYS:
        begins.append(begins[-1] + delay + 0.2)
    run.deliver("dead", "undeliverable", SUCCEEDED, [(at, "500") for at in begins], secret="whsec_dead")

    run.pay("silent", "without-url", 140)
    run.pay("paused", "set-aside", 150)
    run.list_delivery("paused", "set-aside", SUCCEEDED, "pending", [])


def _add_faults(run: RunBuilder) -> None:
    run.add(FaultBegan(at=START + 106, number=1, fault="kill", target="webhooks-1", details=""))
    run.add(FaultEnded(at=START + 111, number=1, problem=None))
    run.add(FaultBegan(at=START + 299, number=2, fault="clock", target="postgres", details=""))
    run.add(ClockMoved(at=START + JUMP_AT + 0.2, began_at=START + JUMP_AT - 0.2, seconds=JUMP))
    run.add(FaultEnded(at=START + 301, number=2, problem=None))
    run.add(FaultBegan(at=START + 380, number=3, fault="full_disk", target="broker-1", details=""))
    run.add(FaultEnded(at=START + 380.1, number=3, problem="no file system of its own"))


def _add_end(run: RunBuilder) -> None:
    run.add(LoadStopped(at=START + 400))
    run.add(SettlingEnded(at=START + 430, settled=True, waits_for=()))
    run.add(OutboxCounted(at=START + 438, rows=0))
    run.add(AuditEnded(at=START + 440, exit_status=0, findings=()))

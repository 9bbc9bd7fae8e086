"""What looks like damage but is none: lost answers, requests that overlap, jumps of the clock, and faults."""

from dataclasses import replace

import pytest

from chaos.history import (
    ClockMoved,
    CreateAnswered,
    CustomerClicked,
    DeliveryShown,
    DuplicateReported,
    FaultBegan,
    FaultEnded,
    Record,
    ResendRequested,
    RetrieveAnswered,
    SecretRolled,
    TryShown,
    WebhooksPaused,
    WebhookUrlChanged,
)
from chaos.judge.verdict import judge
from tests.chaos.planted import (
    Planted,
    add,
    add_run,
    assert_named,
    both,
    change,
    change_intent,
    change_request,
    names,
    never_sent,
    planted,
    repeat_request,
    replaced,
    request_of,
    sign_with,
)
from tests.chaos.run_builder import JUMP, START, SUCCEEDED, RunBuilder, delivery_id
from tests.chaos.sample_run import ALPHA_URL, OLD, build_sample

_CARD = delivery_id("card", SUCCEEDED)
_RETRIED = delivery_id("retried", SUCCEEDED)
_AFTER_URL = delivery_id("after-url", SUCCEEDED)
_CODE = delivery_id("code", SUCCEEDED)
_UNDELIVERABLE = delivery_id("undeliverable", SUCCEEDED)


def _add_fault(began_at: float, ended_at: float) -> list[Record]:
    return [
        FaultBegan(at=START + began_at, number=50, fault="hang", target="webhooks-receivers", details=""),
        FaultEnded(at=START + ended_at, number=50, problem=None),
    ]


def _retrieve_while_paid(run: RunBuilder) -> None:
    """A retrieve that began before the payment was seen, and ended after it."""
    run.retrieve("alpha", "card", 12.4, run.seen("card", "processing", 10, 12.1))
    slow = run.records.pop()
    assert isinstance(slow, RetrieveAnswered)
    run.add(replace(slow, at=START + 14))


def _retry_over_the_jump(run: RunBuilder) -> None:
    """Its first retry is due at once, because the clock jumps in between."""
    run.pay("beta", "jumped", 296)
    run.deliver("beta", "jumped", SUCCEEDED, [(299.5, "500"), (300.05, "200")], secret="whsec_beta")


def _retry_after_the_jump(run: RunBuilder) -> None:
    """Its first request comes while the clock jumps, and was before the jump."""
    run.pay("beta", "jumped", 296)
    for at, answer in ((300.1, "500"), (300.6, "200")):
        run.receive(
            "beta", "jumped", SUCCEEDED, at, secret="whsec_beta", url="https://beta.test/hook", answer=answer
        )
    run.list_delivery(
        "beta", "jumped", SUCCEEDED, "succeeded", [(299.99, "500", True), (300.55, "200", True)]
    )


def _tried_after_the_listing(run: RunBuilder) -> None:
    """The tries of a receiver that does not live go on after they were listed."""
    run.pay("dead", "pending", 390)
    for at in (430, 433.5, 440):
        run.receive(
            "dead", "pending", SUCCEEDED, at, secret="whsec_dead", url="https://dead.test/hook", answer="500"
        )
    run.list_delivery("dead", "pending", SUCCEEDED, "pending", [(429.9, "500", True)])


def _hung_at_first(run: RunBuilder) -> None:
    run.pay("beta", "hung", 200)
    for at, answer in ((202.6, "hang"), (213.6, "200")):
        run.receive(
            "beta", "hung", SUCCEEDED, at, secret="whsec_beta", url="https://beta.test/hook", answer=answer
        )
    run.list_delivery(
        "beta", "hung", SUCCEEDED, "succeeded", [(202.5, "timeout", True), (213.5, "200", True)]
    )


def _refused_at_first(run: RunBuilder) -> None:
    run.pay("beta", "refused", 200)
    run.receive("beta", "refused", SUCCEEDED, 204, secret="whsec_beta", url="https://beta.test/hook")
    run.list_delivery(
        "beta", "refused", SUCCEEDED, "succeeded", [(202.5, "refused", True), (203.9, "200", True)]
    )


def _resent_between_tries(run: RunBuilder) -> None:
    """A resend comes at once, and the next scheduled try when it is due."""
    run.pay("beta", "resent", 200)
    tries = [(202.5, "500", True), (202.9, "503", False), (203.7, "200", True)]
    for at, answer, _ in tries:
        run.receive(
            "beta", "resent", SUCCEEDED, at, secret="whsec_beta", url="https://beta.test/hook", answer=answer
        )
    run.list_delivery("beta", "resent", SUCCEEDED, "succeeded", tries)
    run.add(
        ResendRequested(
            at=START + 202.8,
            began_at=START + 202.7,
            application="beta",
            delivery=delivery_id("resent", SUCCEEDED),
            acknowledged=True,
        )
    )


def _in_flight_at_the_jump(run: RunBuilder) -> None:
    """The jump comes between the request and its recording: its begin is counted back from the new time."""
    run.pay("beta", "jumped", 290)
    run.receive(
        "beta", "jumped", SUCCEEDED, 297, secret="whsec_beta", url="https://beta.test/hook", answer="slow"
    )
    run.list_delivery("beta", "jumped", SUCCEEDED, "succeeded", [(300 - 3, "200", True)])
    shown = run.records.pop()
    assert isinstance(shown, TryShown)
    run.add(replace(shown, began_at=START + 297 + JUMP))


def _canceled_during_the_jump(run: RunBuilder) -> None:
    run.retrieve("beta", "late", 299.9, run.seen("late", "canceled", 98, 300))


def _url_set_later(run: RunBuilder) -> None:
    """What happened before the URL was set is not owed (§6.1)."""
    run.add(
        WebhookUrlChanged(
            at=START + 200,
            began_at=START + 199,
            application="silent",
            webhook_url="https://silent.test/hook",
            acknowledged=True,
        )
    )


def _exhausted_for_a_living_receiver(records: list[Record]) -> list[Record]:
    """The receiver lives again, but only after the ninth try; nothing of the delivery ever reached it."""
    records = never_sent(_UNDELIVERABLE)(records)
    failed = [
        replace(one, result="refused")
        if isinstance(one, TryShown) and one.delivery == _UNDELIVERABLE
        else one
        for one in records
    ]
    return [
        replace(one, receiver_lives=True) if getattr(one, "receiver_lives", None) is False else one  # type: ignore[call-arg]
        for one in failed
    ]


def _held_back_request(records: list[Record]) -> list[Record]:
    """A request hangs in the network, times out, and arrives 40 s after it began, just before the next try."""
    request = request_of(records, _RETRIED, 1)
    records = replaced(records, request, replace(request, at=START + 60))
    records = change(TryShown, {"result": "timeout"}, delivery=_RETRIED, number=2)(records)
    return [*records, *_add_fault(23, 60)]


def _lost_roll(records: list[Record]) -> list[Record]:
    """A roll without an answer: the receiver cannot check signatures of the new secret."""
    records = sign_with("whsec_nobody_knows", _CODE)(records)
    return [*records, SecretRolled(at=START + 60, began_at=START + 50, application="beta", secret=None)]


SILENT = [
    planted(
        "a request is sent again because the receiver closed a kept connection",
        repeat_request(_RETRIED, 23.7, connection=8),
    ),
    planted(
        "a try that was lost around a fault was sent again because the receiver closed a kept connection",
        both(
            add(*_add_fault(22.8, 22.9)),
            repeat_request(_RETRIED, 23.0, answer="close"),
            repeat_request(_RETRIED, 23.05, connection=8, answer="close"),
        ),
    ),
    planted(
        "two processes send the same record around a fault, and both replace a kept connection that was closed",
        both(
            add(*_add_fault(22.8, 22.9)),
            repeat_request(_RETRIED, 23.0, answer="close"),
            repeat_request(_RETRIED, 23.02, connection=99, answer="close"),
            repeat_request(_RETRIED, 23.1, connection=98, answer="close"),
        ),
    ),
    planted("a retrieve overlaps the payment", add_run(_retrieve_while_paid)),
    planted("an error around a fault", add_run(lambda run: run.retrieve("beta", "code", 109, None, 503))),
    planted(
        "a create that was shed around a fault", add_run(lambda run: run.create("beta", "shed", 109, None))
    ),
    *(
        planted(
            f"a create that was answered {status} around a fault",
            change(CreateAnswered, {"http_status": status}, merchant_reference="order-unknown"),
        )
        for status in (408, 429, 500, 503)
    ),
    planted(
        "an intent that does not exist",
        add_run(lambda run: run.retrieve("alpha", "nothing", 20, None, 404)),
    ),
    planted(
        "another application is refused",
        add_run(lambda run: run.retrieve("beta", "card", 20, None, 403)),
    ),
    planted(
        "a retrieve that was sent before the intent was acknowledged",
        add_run(lambda run: run.retrieve("alpha", "card", 9.8, None, 404)),
    ),
    planted(
        "an expiry too near, because the clock jumped",
        change(
            CreateAnswered,
            {"http_status": 422, "expires_at": START + 400, "at": START + 111},
            merchant_reference="order-unknown",
        ),
    ),
    planted("canceled is seen while the clock jumps", add_run(_canceled_during_the_jump)),
    planted(
        "an intent expired half a minute before the end",
        both(
            change_intent(CreateAnswered, {"expires_at": START + 402 + JUMP}, at=START + 310.1),
            change(CreateAnswered, {"expires_at": START + 402 + JUMP}, at=START + 310.1),
            change_intent(RetrieveAnswered, {"expires_at": START + 402 + JUMP}, uuid="open"),
        ),
    ),
    planted(
        "a form without an answer that charged nothing", add_run(lambda run: run.click("open", 312, None))
    ),
    planted(
        "a customer pays twice around a fault",
        both(
            add_run(lambda run: run.click("repeated", 106.2, None)),
            add_run(lambda run: run.charge("repeated", "paid")),
            add(DuplicateReported(at=START + 437, uuid="repeated", attempt="attempt-101")),
        ),
    ),
    planted(
        "a customer pays twice, long before and long after a fault",
        both(
            add_run(lambda run: run.click("across-roll", 250, None)),
            add_run(lambda run: run.charge("across-roll", "paid")),
            add(DuplicateReported(at=START + 437, uuid="across-roll", attempt="attempt-101")),
        ),
    ),
    planted(
        "a form that was sent while the clock jumped over the expiry",
        change(
            CustomerClicked, {"at": START + 300.1, "began_at": START + 300}, uuid="declined", page="declined"
        ),
    ),
    planted(
        "an intent whose create got no answer is retrieved after its webhook",
        add_run(lambda run: run.retrieve("beta", "unknown", 304, run.seen("unknown", "canceled", 110, 301))),
    ),
    planted(
        "an expiry a little over five minutes ahead, on a clock that nobody knows exactly",
        change(
            CreateAnswered,
            {"http_status": 422, "expires_at": START + 411, "at": START + 111.5},
            merchant_reference="order-unknown",
        ),
    ),
    planted(
        "a client gives up after the load has stopped",
        add_run(lambda run: run.retrieve("alpha", "card", 420, None, None)),
    ),
    planted("a retry over a jump of the clock", add_run(_retry_over_the_jump)),
    planted("a retry after a jump of the clock", add_run(_retry_after_the_jump)),
    planted("tries that go on while the end is recorded", add_run(_tried_after_the_listing)),
    planted("a retry after a try that hung", add_run(_hung_at_first)),
    planted("a first try that was refused", add_run(_refused_at_first)),
    planted("a resend between two tries", add_run(_resent_between_tries)),
    planted("a request in flight while the clock jumps", add_run(_in_flight_at_the_jump)),
    planted(
        "a retry that seems 50 ms early",
        change(TryShown, {"began_at": START + 25.55}, delivery=_RETRIED, number=3),
    ),
    planted("a request that was held back by the network", _held_back_request),
    planted("an answer that came too late", change_request(_RETRIED, 1, answer="slow")),
    planted(
        "a URL while it changes",
        both(
            change(WebhookUrlChanged, {"began_at": START + 50, "at": START + 58}),
            change_request(_AFTER_URL, url=ALPHA_URL),
        ),
    ),
    planted(
        "a change of the URL without an answer",
        both(
            change(WebhookUrlChanged, {"acknowledged": False}),
            change_request(_AFTER_URL, url=ALPHA_URL),
        ),
    ),
    planted(
        "a secret while it is rolled",
        both(change(SecretRolled, {"at": START + 58}), sign_with(OLD, _AFTER_URL)),
    ),
    planted("a secret that nobody knows", _lost_roll),
    planted("a URL that was set after the change", add_run(_url_set_later)),
    planted("a delivery that failed nine times", _exhausted_for_a_living_receiver),
    planted(
        "a repeat shortly before its worker was killed", repeat_request(delivery_id("twice", SUCCEEDED), 92)
    ),
    planted(
        "a repeat while a fault is cleared up",
        both(repeat_request(delivery_id("unanswered", SUCCEEDED), 165)),
    ),
    planted(
        "a resend without an answer that was not made",
        add(
            ResendRequested(
                at=START + 71, began_at=START + 70, application="alpha", delivery=_RETRIED, acknowledged=False
            )
        ),
    ),
    planted(
        "a resend that was dropped because of a pause",
        add(
            ResendRequested(
                at=START + 26, began_at=START + 25, application="beta", delivery=_CODE, acknowledged=True
            )
        ),
    ),
    planted(
        "a resend that was dropped because a pause followed",
        add(
            ResendRequested(
                at=START + 19, began_at=START + 18, application="beta", delivery=_CODE, acknowledged=True
            )
        ),
    ),
    planted("a resend that is repeated around a fault", repeat_request(_CARD, 385)),
    planted(
        "an accepted answer that a fault lost",
        both(
            change(
                TryShown,
                {"result": "broken_answer"},
                delivery=delivery_id("repeated", SUCCEEDED),
            ),
            change(
                DeliveryShown,
                {"status": "pending"},
                delivery=delivery_id("repeated", SUCCEEDED),
            ),
            add(
                WebhooksPaused(
                    at=START + 399, began_at=START + 398, application="beta", paused=True, acknowledged=False
                )
            ),
        ),
    ),
    planted("records in another order", lambda records: records[::-1]),
]


@pytest.mark.parametrize("case", SILENT, ids=names(SILENT))
def test_what_is_no_damage_is_not_named(case: Planted) -> None:
    assert case.damage(build_sample()) != build_sample()
    assert_named(case)


def test_signatures_of_an_unknown_secret_are_counted() -> None:
    assert any("1 signatures fit no known secret" in note for note in judge(_lost_roll(build_sample())).notes)


def test_secret_of_the_past_is_not_excused_by_a_lost_roll_that_came_later() -> None:
    records = sign_with("whsec_nobody_knows", _CODE)(build_sample())
    late = SecretRolled(at=START + 90, began_at=START + 80, application="beta", secret=None)
    assert {finding.rule for finding in judge([*records, late]).findings} == {"signature-is-valid"}


def test_clock_that_was_moved_back_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="moved back"):
        judge([*build_sample(), ClockMoved(at=START + 2, began_at=START + 1, seconds=-5)])

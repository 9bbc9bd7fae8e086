"""Damage to charges and to the end of a run, planted into a correct history, is named by the rule that it breaks."""

import pytest

from chaos.history import (
    AuditEnded,
    ChargeAtBank,
    CustomerClicked,
    DuplicateReported,
    OutboxCounted,
    RetrieveAnswered,
    SettlingEnded,
)
from chaos.judge.settling import AUDIT_AGREES
from chaos.judge.verdict import judge
from tests.chaos.planted import (
    Planted,
    add,
    add_run,
    assert_named,
    both,
    change,
    drop,
    final_status,
    names,
    never_listed,
    never_sent,
    planted,
)
from tests.chaos.run_builder import AMOUNT, CANCELED, START, SUCCEEDED, delivery_id
from tests.chaos.sample_run import build_sample

PLANTED = [
    planted(
        "a payment is lost, and the intent expires",
        both(
            final_status("unanswered", "canceled", 80, 301),
            never_sent(delivery_id("unanswered", SUCCEEDED)),
            never_listed(delivery_id("unanswered", SUCCEEDED)),
            add_run(
                lambda run: run.deliver("beta", "unanswered", CANCELED, [(302, "200")], secret="whsec_beta")
            ),
        ),
        "paid-charge-is-succeeded-intent",
    ),
    planted(
        "an intent succeeds without a charge", drop(ChargeAtBank, uuid="card"), "succeeded-intent-is-paid"
    ),
    planted(
        "an intent succeeds with a declined charge",
        change(ChargeAtBank, {"status": "declined"}, uuid="card"),
        "succeeded-intent-is-paid",
    ),
    planted(
        "an intent succeeds with a charge of another amount",
        change(ChargeAtBank, {"amount": AMOUNT - 1}, uuid="card"),
        "succeeded-intent-is-paid",
        "charge-fits-its-intent",
    ),
    planted(
        "the only charge is reported as a duplicate",
        add(DuplicateReported(at=START + 437, uuid="card", attempt="attempt-1")),
        "succeeded-intent-is-paid",
    ),
    planted("a duplicate is not reported", drop(DuplicateReported, uuid="twice"), "paid-once"),
    planted(
        "a customer pays twice, with no fault around",
        both(
            add_run(lambda run: run.click("card", 12.1, "paid")),
            add_run(lambda run: run.charge("card", "paid")),
            add(DuplicateReported(at=START + 437, uuid="card", attempt="attempt-101")),
        ),
        "second-payment-has-a-reason",
    ),
    planted(
        "one click makes two charges",
        add_run(lambda run: run.charge("card", "declined")),
        "one-click-one-charge",
    ),
    planted(
        "a customer is charged without a click",
        both(
            drop(CustomerClicked, uuid="card"),
            add_run(lambda run: run.charge("card", "paid")),
            add(DuplicateReported(at=START + 437, uuid="card", attempt="attempt-101")),
        ),
        "one-click-one-charge",
    ),
    planted(
        "one click without an answer makes two charges",
        both(
            add_run(lambda run: run.charge("unanswered", "paid")),
            add(DuplicateReported(at=START + 437, uuid="unanswered", attempt="attempt-101")),
        ),
        "one-click-one-charge",
        "second-payment-has-a-reason",
    ),
    planted(
        "a code makes a second charge",
        add_run(lambda run: run.charge("code", "declined")),
        "one-click-one-charge",
    ),
    planted(
        "an attempt is charged twice",
        both(
            add_run(lambda run: run.click("card", 12.1, None)),
            add_run(lambda run: run.charge("card", "declined")),
            change(ChargeAtBank, {"attempt": "attempt-1"}, attempt="attempt-101"),
        ),
        "one-attempt-one-charge",
    ),
    planted(
        "a charge has another amount",
        change(ChargeAtBank, {"amount": 2 * AMOUNT}, uuid="declined"),
        "charge-fits-its-intent",
    ),
    planted(
        "a charge is of no intent",
        both(
            change(ChargeAtBank, {"uuid": "nobody"}, uuid="declined"),
            change(CustomerClicked, {"uuid": "nobody"}, uuid="declined"),
        ),
        "charge-fits-its-intent",
    ),
    planted(
        "a duplicate is none",
        add(DuplicateReported(at=START + 437, uuid="card", attempt="attempt-99")),
        "duplicate-is-a-second-charge",
    ),
    planted(
        "a form that was sent after the expiry is charged",
        change(
            CustomerClicked, {"at": START + 311, "began_at": START + 310}, uuid="declined", page="declined"
        ),
        "no-charge-starts-after-expiry",
    ),
    planted(
        "it does not settle",
        change(SettlingEnded, {"settled": False, "waits_for": ("2 intents are processing",)}),
        "settles-in-time",
    ),
    planted("it settles late", change(SettlingEnded, {"at": START + 480}), "settles-in-time"),
    planted("rows are left in the outbox", change(OutboxCounted, {"rows": 3}), "outbox-is-empty"),
    planted(
        "the audit finds something",
        change(AuditEnded, {"exit_status": 1, "findings": ("events_complete: an intent has no event",)}),
        "audit-finds-nothing",
    ),
    planted("the audit fails", change(AuditEnded, {"exit_status": 3}), "audit-finds-nothing"),
]


@pytest.mark.parametrize("case", PLANTED, ids=names(PLANTED))
def test_damage_is_named(case: Planted) -> None:
    assert_named(case)


def test_audit_that_finds_the_same_does_not_disagree() -> None:
    damage = both(
        drop(ChargeAtBank, uuid="card"),
        change(AuditEnded, {"exit_status": 1, "findings": ("payments_charged: an attempt is not charged",)}),
    )
    found = {finding.rule for finding in judge(damage(build_sample())).findings}
    assert found == {"succeeded-intent-is-paid", "audit-finds-nothing"}


def test_clean_audit_disagrees_with_findings_in_the_stores_only() -> None:
    in_stores = judge(drop(ChargeAtBank, uuid="card")(build_sample()))
    seen_by_clients = judge(drop(RetrieveAnswered, uuid="card", after_settling=True)(build_sample()))
    assert AUDIT_AGREES in {finding.rule for finding in in_stores.findings}
    assert AUDIT_AGREES not in {finding.rule for finding in seen_by_clients.findings}

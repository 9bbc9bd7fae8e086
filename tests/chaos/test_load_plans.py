"""What the load does is drawn from the seed, covers every scripted outcome, and is what the product accepts."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from chaos.load.plans import (
    SCENARIO_NAMES,
    ClickStyle,
    CreateStyle,
    LateSettlement,
    OrderPlan,
    Payment,
    plan_order,
)
from chaos.load.receiver_behaviour import PERIOD_S, Behaviour, behaviour_at
from services.checkout.pages.form_fields import parse_card, parse_code, parse_wallet
from services.sandbox.scripted_outcomes import (
    Card,
    ChargeStatus,
    ScriptedOutcome,
    Wallet,
    result_after_code,
    scripted_outcome,
)
from shared.domain.payment_methods import PaymentMethod

_TODAY = datetime.now(UTC).date()


@pytest.fixture(scope="module")
def plans() -> list[OrderPlan]:
    """As many orders as a run of two minutes starts."""
    return [plan_order(7, number, 12) for number in range(1200)]


@pytest.fixture(scope="module")
def payments(plans: list[OrderPlan]) -> list[Payment]:
    return [payment for plan in plans for payment in plan.visit.payments]


def test_a_seed_gives_the_same_orders_again(plans: list[OrderPlan]) -> None:
    assert [plan_order(7, number, 12) for number in range(1200)] == plans
    assert [plan_order(8, number, 12) for number in range(1200)] != plans


def test_two_minutes_have_every_scenario_and_style(plans: list[OrderPlan], payments: list[Payment]) -> None:
    assert {plan.scenario for plan in plans} == set(SCENARIO_NAMES)
    assert {plan.create_style for plan in plans} == set(CreateStyle)
    assert {plan.visit.late for plan in plans} == {None, *LateSettlement}
    assert {payment.style for payment in payments} == set(ClickStyle)
    assert {payment.code_style for payment in payments} == set(ClickStyle)
    assert {plan.application for plan in plans} == set(range(12))


def test_every_scripted_outcome_occurs_with_its_name(payments: list[Payment]) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for payment in payments:
        instrument = payment.instrument
        method, form = PaymentMethod(instrument.method), instrument.form
        details: Card | Wallet
        if method is PaymentMethod.CARD:
            card = parse_card(form, _TODAY)
            details = Card(card.number, card.expiry_month, card.expiry_year)
        else:
            wallet = parse_wallet(form, method, _TODAY)
            details = Wallet(wallet.phone, wallet.birth_year)
        assert scripted_outcome(method, details, _TODAY) == instrument.script
        seen[instrument.method, instrument.script] += 1
    assert {script for _, script in seen} == set(ScriptedOutcome)
    assert {method for method, _ in seen} == set(PaymentMethod)
    assert min(seen.values()) > 1


def test_right_codes_pay_and_wrong_ones_do_not(payments: list[Payment]) -> None:
    for payment in payments:
        instrument = payment.instrument
        method = PaymentMethod(instrument.method)
        for code, is_right in ((instrument.right_code, True), (instrument.wrong_code, False)):
            assert parse_code({"code": code}, method) == code
            result = result_after_code(ScriptedOutcome.ASKS_FOR_CODE, method, code)
            assert (result.status is ChargeStatus.PAID) is is_right


def test_creates_are_what_the_api_accepts(plans: list[OrderPlan]) -> None:  # §4.1, §8
    assert len({plan.reference for plan in plans}) == len(plans)
    for plan in plans:
        assert all(1000 <= amount <= 1_000_000_000 for amount in plan.amounts)
        assert len(set(plan.amounts)) == 3
        assert plan.expires_in_s is None or 300 < plan.expires_in_s < 31 * 24 * 3600
    soon = [plan for plan in plans if plan.expires_in_s is not None and plan.expires_in_s <= 1200]
    assert len([plan for plan in soon if not plan.visit.payments]) > 50


def test_receivers_fail_and_recover_by_the_seed() -> None:
    moments = [number * PERIOD_S for number in range(60)]
    changing = [behaviour_at(7, 1, moment, True) for moment in moments]
    assert changing == [behaviour_at(7, 1, moment, True) for moment in moments]
    assert changing != [behaviour_at(8, 1, moment, True) for moment in moments]
    assert len(set(changing)) > 4
    assert set(changing[::3]) == {Behaviour.OK}  # so that nine tries do not all fail
    every = {behaviour_at(7, number, moment, True) for number in range(12) for moment in moments}
    assert every == set(Behaviour)


def test_some_receivers_are_always_healthy_and_a_dead_one_never_answers_2xx() -> None:
    moments = [number * PERIOD_S for number in range(200)]
    assert {behaviour_at(7, 4, moment, True) for moment in moments} == {Behaviour.OK}
    dead = {behaviour_at(7, 4, moment, False) for moment in moments}
    assert not dead & {Behaviour.OK, Behaviour.SLOW}
    assert len(dead) > 4

"""Everything that can happen to a payment: customers, crashes, the network, the bank, the verifier, operators, time."""

from collections.abc import Callable, Iterator

from services.checkout.payments.one_time_codes import CodeRefusedError
from shared.domain.attempts.decision_rules import RecordedAnswer, is_definite
from shared.domain.attempts.start import AttemptRefusedError
from shared.domain.attempts.states import AWAITING_CUSTOMER, CHARGED
from shared.domain.attempts.states import ProviderAnswer as Answer
from shared.platform.errors import RefusedError
from tests.model import payment_transitions as product
from tests.model.payment_requests import ANSWER_OF_CHARGE, grow_older, progress_request, write_charge
from tests.model.payment_state import (
    HAS_STATUS_CALL,
    WINDOW,
    Action,
    Attempt,
    Bounds,
    Charge,
    Method,
    State,
    Step,
)

_PAY, _ENTER_CODE = "the customer pays by", "the customer enters a code"
CLICKS_THAT_PAY = frozenset({_PAY, _ENTER_CODE})


def all_steps(state: State, bounds: Bounds) -> Iterator[Step]:
    """Yield every step that is possible in `state`."""
    state = state._replace(events=())
    yield from pass_time(state)
    if bounds.clock_is_set:
        yield from set_clock(state)
    yield from run_expiry(state)
    yield from click_pay(state, bounds)
    for index, attempt in enumerate(state.attempts):
        yield from enter_code(state, index, bounds)
        for request in attempt.in_flight:
            yield from progress_request(state, index, request)
        yield from act_at_bank(state, index)
        yield from notify(state, index)
        yield from inquire(state, index, for_operator=False)
        if bounds.has_operators:
            yield from inquire(state, index, for_operator=True)
            yield from decide(state, index)


def pass_time(state: State) -> Iterator[Step]:
    attempts = tuple(grow_older(attempt) for attempt in state.attempts)
    after = state._replace(ticks_left=max(0, state.ticks_left - 1), attempts=attempts)
    if after != state:
        yield Action("time passes"), after


def set_clock(state: State) -> Iterator[Step]:
    """The database's clock is set forward by the in-flight window. Requests on the network are as young as before."""
    attempts = tuple(
        attempt if attempt.age is None else attempt._replace(age=WINDOW) for attempt in state.attempts
    )
    after = state._replace(ticks_left=max(0, state.ticks_left - WINDOW), attempts=attempts)
    if after != state:
        yield Action("the clock is set forward"), after


def run_expiry(state: State) -> Iterator[Step]:
    after = product.expire(state)
    if after is not None:
        yield Action("the expiry job runs"), after


def click_pay(state: State, bounds: Bounds) -> Iterator[Step]:
    """Pay, in any tab. With "leave", the customer confirms to leave a provider's page that is open."""
    if len(state.attempts) >= bounds.attempts:
        return
    is_page_open = any(attempt.method is Method.PAGE for attempt in state.attempts)
    for method in bounds.methods:
        for leaves in (False, True) if is_page_open else (False,):
            action = Action(_PAY, None, method + (", leaving the page" if leaves else ""))
            yield from _unless_refused(
                action,
                lambda m=method, leave=leaves: product.start_attempt(state, m, leave_redirect=leave),  # type: ignore[misc]
            )


def enter_code(state: State, index: int, bounds: Bounds) -> Iterator[Step]:
    """Enter a code, also in an old tab."""
    if state.attempts[index].requests < bounds.requests:
        yield from _unless_refused(Action(_ENTER_CODE, index), lambda: product.submit_code(state, index))


def act_at_bank(state: State, index: int) -> Iterator[Step]:
    """The customer pays on the provider's page, or the bank settles a declined charge as paid."""
    attempt = state.attempts[index]
    if attempt.method is Method.PAGE and attempt.charge is Charge.OPEN:
        for charge in (Charge.PAID, Charge.DECLINED):
            after = product.replace_attempt(state, index, write_charge(attempt, charge))
            yield Action("on the provider's page", index, charge), after
    if attempt.charge is Charge.DECLINED:
        after = product.replace_attempt(state, index, write_charge(attempt, Charge.PAID))
        yield Action("the bank settles the declined charge as paid", index), after


def notify(state: State, index: int) -> Iterator[Step]:
    """A notification comes: any number of times, late, and in any order."""
    attempt = state.attempts[index]
    if attempt.charge is Charge.PAID:
        yield (
            Action("a notification says paid", index),
            product.settle_notification(state, index, Answer.PAID),
        )
    if attempt.was_declined or attempt.was_code_refused:
        yield (
            Action("a notification says declined", index),
            product.settle_notification(state, index, Answer.DECLINED),
        )


def inquire(state: State, index: int, *, for_operator: bool) -> Iterator[Step]:
    """The verifier makes an inquiry, the bank answers, the verifier settles; or it crashes in between."""
    attempt = state.attempts[index]
    inquiry = attempt.inquiry
    if inquiry is None:
        if for_operator:
            may_ask = attempt.method in HAS_STATUS_CALL and attempt.state not in CHARGED
        else:
            may_ask = attempt.is_inquiry_planned
        if may_ask:
            made = product.make_inquiry(attempt, for_operator=for_operator)
            made = made._replace(answer=status_answer(attempt))
            who = "an operator" if for_operator else "the verifier"
            yield (
                Action(f"{who} asks the provider", index, made.answer or ""),
                product.replace_attempt(state, index, attempt._replace(inquiry=made)),
            )
    elif for_operator is (inquiry.asked_by_operator is not None):
        ended = product.replace_attempt(state, index, attempt._replace(inquiry=None))
        assert inquiry.answer is not None
        yield Action("the verifier crashes", index), ended
        yield (
            Action("the verifier settles", index, inquiry.answer),
            product.settle_inquiry(ended, index, inquiry, inquiry.answer),
        )


def decide(state: State, index: int) -> Iterator[Step]:
    """An operator decides: what the recorded answer says, or else what the provider's own records say now."""
    attempt = state.attempts[index]
    recorded = product.recorded_answer(attempt) if attempt.method in HAS_STATUS_CALL else None
    if recorded is not None and is_definite(recorded):
        is_paid = recorded is RecordedAnswer.PAID
    else:
        is_paid = attempt.charge is Charge.PAID
    gives_up_page = attempt.method is Method.PAGE and attempt.state in AWAITING_CUSTOMER and not is_paid
    before = (
        product.replace_attempt(state, index, attempt._replace(is_given_up=True)) if gives_up_page else state
    )
    yield from _unless_refused(
        Action("an operator decides", index, "paid" if is_paid else "declined"),
        lambda: product.decide(before, index, is_paid=is_paid),
    )


def status_answer(attempt: Attempt) -> Answer:
    """Return what the provider says about the attempt."""
    return ANSWER_OF_CHARGE[attempt.charge] if attempt.method in HAS_STATUS_CALL else Answer.UNKNOWN


def _unless_refused(action: Action, move: Callable[[], State]) -> Iterator[Step]:
    try:
        after = move()
    except (AttemptRefusedError, CodeRefusedError, RefusedError):
        return
    yield action, after

"""What the product does to an intent and its attempts, on the state of the model instead of rows.

Every decision is made by the product's own functions. They are called through their modules, so that a test can
replace them. `test_model_matches_database` compares the rest, which is SQL in the product, with the real thing.
"""

from uuid import UUID

from services.checkout.payments import one_time_codes
from services.checkout.providers.interface import FailureReason, build_response
from shared.domain.attempts import (
    decision_rules,
    operator_decision,
    settlement_rules,
    start,
    status_inquiries,
)
from shared.domain.attempts import states as attempt_states
from shared.domain.attempts.decision_rules import RecordedAnswer
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import AWAITING_CUSTOMER, AttemptSnapshot, AttemptState
from shared.domain.attempts.states import ProviderAnswer as Answer
from shared.domain.intents import states as intent_states
from shared.domain.intents.states import IntentTrigger
from tests.model.payment_state import (
    HAS_STATUS_CALL,
    INITIAL_STATE,
    Attempt,
    Charge,
    Inquiry,
    Method,
    Request,
    State,
    now,
)

_ID = UUID(int=0)


def replace_attempt(state: State, index: int, attempt: Attempt) -> State:
    attempts = (*state.attempts[:index], attempt, *state.attempts[index + 1 :])
    return state._replace(attempts=attempts)


def apply_trigger(state: State, trigger: IntentTrigger) -> State:
    """As shared.domain.intents.store.apply_trigger. Raises TransitionNotAllowedError."""
    after = intent_states.next_status(state.intent, trigger)
    event = intent_states.event_type_for(state.intent, after)
    if event is None:
        return state
    state = state._replace(intent=after, events=(*state.events, event))
    if intent_states.may_expire(after) and state.is_expired:
        return apply_trigger(state, IntentTrigger.EXPIRE)
    return state


def expire(state: State) -> State | None:
    """The scheduler's job. Returns None if the intent is not due."""
    if not (intent_states.may_expire(state.intent) and state.is_expired):
        return None
    return apply_trigger(state, IntentTrigger.EXPIRE)


def start_attempt(state: State, method: Method, *, leave_redirect: bool) -> State:
    """As shared.domain.attempts.start.start_attempt. Raises AttemptRefusedError."""
    start.check_payable(state.intent, lambda: state.is_expired)
    awaiting = [attempt.state for attempt in state.attempts if attempt.state in AWAITING_CUSTOMER]
    start.check_replaceable(awaiting, leave_redirect=leave_redirect)
    kept = tuple(
        _abandon(attempt, leave_redirect=leave_redirect) if attempt.state in AWAITING_CUSTOMER else attempt
        for attempt in state.attempts
    )
    initial = INITIAL_STATE[method]
    is_sent = initial is AttemptState.SENT
    attempt = Attempt(
        method,
        initial,
        requests=int(is_sent),
        age=0 if is_sent else None,
        is_inquiry_planned=is_sent,
        in_flight=() if method is Method.PAGE else (_request(int(is_sent), is_start=True),),
        charge=Charge.OPEN if method is Method.PAGE else Charge.NONE,
    )
    state = state._replace(attempts=(*kept, attempt))
    return apply_trigger(state, IntentTrigger.ATTEMPT_SENT) if is_sent else state


def submit_code(state: State, index: int) -> State:
    """As start.submit_code and CodeChallenges.count_try. Raises AttemptRefusedError or CodeRefusedError."""
    attempt = state.attempts[index]
    start.check_payable(state.intent, lambda: state.is_expired)
    start.check_awaits_code(attempt.state)
    if attempt.codes_tried is None:
        raise one_time_codes.CodeRefusedError(FailureReason.CODE_EXPIRED)
    if _challenge(attempt.codes_tried).tries_left == 0:
        raise one_time_codes.CodeRefusedError(FailureReason.TOO_MANY_CODES)
    sent = attempt._replace(
        state=AttemptState.SENT,
        requests=attempt.requests + 1,
        age=0,
        is_inquiry_planned=True,
        codes_tried=attempt.codes_tried + 1,
        in_flight=(*attempt.in_flight, _request(attempt.requests + 1, is_start=False)),
    )
    return apply_trigger(replace_attempt(state, index, sent), IntentTrigger.ATTEMPT_SENT)


def settle_response(state: State, index: int, request: Request) -> State:
    """Settle what the process of `request` has, and end the process. As PaymentService does."""
    attempt = state.attempts[index]
    assert request.response is not None
    answer = settlement_rules.answer_in_response(attempt.snapshot, request.number, request.response)
    can_inquire = attempt.method in HAS_STATUS_CALL
    state = _settle(state, index, answer, is_own_report=True, can_inquire=can_inquire)
    attempt = _open_challenge(state.attempts[index], request.response)
    if request.is_provider_away and not request.is_start and attempt.codes_tried is not None:
        attempt = attempt._replace(codes_tried=attempt.codes_tried - 1)
    return replace_attempt(state, index, attempt)


def make_inquiry(attempt: Attempt, *, for_operator: bool) -> Inquiry:
    past_window = settlement_rules.is_past_in_flight_window(attempt.sent_at, now())
    return Inquiry(attempt.requests, past_window, attempt.snapshot if for_operator else None)


def settle_inquiry(state: State, index: int, inquiry: Inquiry, raw: Answer) -> State:
    """As Verifier does, and record the answer for the operator who asked."""
    attempt = state.attempts[index]
    can_inquire = attempt.method in HAS_STATUS_CALL
    before, limited = attempt.snapshot, limit_codes(raw, attempt.codes_tried)
    answer = settlement_rules.answer_to_inquiry(
        before, inquiry.number, limited, past_in_flight_window=inquiry.past_in_flight_window
    )
    state = _settle(state, index, answer, is_own_report=False, can_inquire=can_inquire)
    attempt = _open_challenge(state.attempts[index], limited)
    if inquiry.asked_by_operator is not None:
        about = status_inquiries.snapshot_answered(inquiry.asked_by_operator, before, attempt.state)
        recorded = decision_rules.to_recorded_answer(AttemptOutcome(raw, can_inquire=can_inquire))
        attempt = _record(attempt, (recorded, about, inquiry.past_in_flight_window))
    return replace_attempt(state, index, attempt)


def settle_notification(state: State, index: int, answer: Answer) -> State:
    """As shared.domain.attempts.settlement.settle_notification."""
    counted = settlement_rules.answer_in_notification(state.attempts[index].snapshot, answer)
    return _settle(state, index, counted, is_own_report=True)


def decide(state: State, index: int, *, is_paid: bool) -> State:
    """As shared.domain.attempts.operator_decision.decide_attempt. Raises RefusedError."""
    attempt = state.attempts[index]
    decision_rules.check_decision(
        attempt.snapshot, attempt.snapshot, lambda: _is_in_flight(attempt), is_paid=is_paid
    )
    if attempt.method in HAS_STATUS_CALL:
        answer = recorded_answer(attempt)
        if answer is None:
            raise operator_decision.NotAskedError
        decision_rules.check_contradiction(answer, is_paid=is_paid)
    return _settle(state, index, Answer.PAID if is_paid else Answer.DECLINED, is_own_report=False)


def recorded_answer(attempt: Attempt) -> RecordedAnswer | None:
    """Return the answer that an operator has to decide with, or None if the provider has to be asked first."""
    if attempt.recorded is None:
        return None
    answer, about, was_past_window = attempt.recorded
    asked_at = now() if was_past_window or attempt.sent_at is None else attempt.sent_at
    inquiry = status_inquiries.OperatorInquiry(_ID, "", asked_at, answer, None, now(), about)
    chosen = status_inquiries.choose_answer([inquiry], attempt.snapshot, attempt.sent_at)
    return None if chosen is None else chosen.answer


def limit_codes(answer: Answer, codes_tried: int | None) -> Answer:
    """Return the answer after one_time_codes.enforce_try_limit."""
    if answer is not Answer.NEEDS_CODE or codes_tried is None:
        return answer
    limited = one_time_codes.enforce_try_limit(
        build_response(answer, FailureReason.WRONG_CODE), _challenge(codes_tried)
    )
    return limited.outcome.answer


def _settle(
    state: State, index: int, answer: Answer | None, *, is_own_report: bool, can_inquire: bool = True
) -> State:
    """As settlement._apply_outcome. Raises UnexpectedAnswerError."""
    if answer is None:
        return state
    attempt = state.attempts[index]
    change = settlement_rules.change_after(attempt.state, answer, state.intent)
    if change is None:
        return state
    after = change.state
    if change.trigger is not None:
        state = apply_trigger(state, change.trigger)
        after = attempt_states.abandon_if_unpayable(after, state.intent)
    keeps = settlement_rules.keeps_inquiries(attempt.snapshot, after, is_own_report=is_own_report)
    planned = settlement_rules.needs_inquiry(after, can_inquire=can_inquire) or (
        attempt.is_inquiry_planned and keeps
    )
    return replace_attempt(state, index, attempt._replace(state=after, is_inquiry_planned=planned))


def _abandon(attempt: Attempt, *, leave_redirect: bool) -> Attempt:
    leaves_page = leave_redirect and attempt.state is AttemptState.AWAITING_REDIRECT
    return attempt._replace(state=AttemptState.ABANDONED, is_given_up=attempt.is_given_up or leaves_page)


def _request(number: int, *, is_start: bool) -> Request:
    return Request(number, is_start, age=0, on_network=True, awaits_response=True)


def _record(attempt: Attempt, new: tuple[RecordedAnswer, AttemptSnapshot, bool]) -> Attempt:
    """Keep the one answer that operators decide with: the new one, unless only the old one counts."""
    with_new = attempt._replace(recorded=new)
    old, chosen = recorded_answer(attempt), recorded_answer(with_new)
    keeps_old = old is not None and decision_rules.is_definite(old)
    is_better = chosen is not None and (not keeps_old or decision_rules.is_definite(chosen))
    return with_new if is_better else attempt


def _open_challenge(attempt: Attempt, answer: Answer) -> Attempt:
    """As SettlementSideEffects.record_side_effects."""
    needs_code = attempt.state is AttemptState.AWAITING_CODE and answer is Answer.NEEDS_CODE
    return attempt._replace(codes_tried=0) if needs_code and attempt.codes_tried is None else attempt


def _challenge(codes_tried: int) -> one_time_codes.CodeChallenge:
    return one_time_codes.CodeChallenge(_ID, None, None, False, codes_tried, False, 0)


def _is_in_flight(attempt: Attempt) -> bool:
    return not settlement_rules.is_past_in_flight_window(attempt.sent_at, now())

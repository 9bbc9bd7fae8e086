"""The exhaustive model of a payment: all states within the bounds, and what must be true in each of them (§3)."""

from collections.abc import Hashable, Iterator

from shared.domain.attempts.states import (
    AWAITING_CUSTOMER,
    CHARGED,
    IN_FLIGHT,
    AttemptState,
    ProviderAnswer,
    UnexpectedAnswerError,
)
from shared.domain.intents.states import EventType, IntentStatus, TransitionNotAllowedError
from tests.model import payment_actions as actions
from tests.model.exploration import ViolationError
from tests.model.payment_actions import CLICKS_THAT_PAY
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
    describe,
)
from tests.model.payment_transitions import recorded_answer

_STATUS_OF_EVENT = {
    EventType.REQUIRES_PAYMENT_METHOD: IntentStatus.REQUIRES_PAYMENT_METHOD,
    EventType.PROCESSING: IntentStatus.PROCESSING,
    EventType.SUCCEEDED: IntentStatus.SUCCEEDED,
    EventType.CANCELED: IntentStatus.CANCELED,
}
# §3, not read from the product's table: the product's may be wrong.
_ALLOWED_CHANGES = frozenset(
    {
        (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.PROCESSING),
        (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.SUCCEEDED),
        (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.CANCELED),
        (IntentStatus.PROCESSING, IntentStatus.REQUIRES_PAYMENT_METHOD),
        (IntentStatus.PROCESSING, IntentStatus.SUCCEEDED),
        (IntentStatus.CANCELED, IntentStatus.SUCCEEDED),
    }
)
_MAX_QUIET_STEPS = 100


class PaymentModel:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._settles: set[Hashable] = set()
        """States from which everything settles, as far as known."""
        self._numbers: dict[Attempt, int] = {}

    def initial(self) -> State:
        return State(IntentStatus.REQUIRES_PAYMENT_METHOD, self._bounds.ticks, ())

    def successors(self, state: State) -> Iterator[Step]:
        try:
            for action, after in actions.all_steps(state, self._bounds):
                _check_step(action, state, after)
                yield action, after
        except (TransitionNotAllowedError, UnexpectedAnswerError) as error:
            raise ViolationError(f"the product raises: {error}") from error

    def key(self, state: State) -> Hashable:
        """Attempts are interchangeable: nothing depends on which of them was first."""
        return (state.intent.value, state.ticks_left, *sorted(map(self._number, state.attempts)))

    def canonical(self, state: State) -> State:
        return state._replace(attempts=tuple(map(_without_irrelevant_details, state.attempts)))

    def _number(self, attempt: Attempt) -> int:
        number = self._numbers.get(attempt)
        if number is None:
            number = self._numbers.setdefault(_without_irrelevant_details(attempt), len(self._numbers))
            self._numbers[attempt] = number
        return number

    def describe(self, state: State) -> str:
        return describe(state)

    def check(self, state: State) -> None:
        _check_state(state)
        if not self._bounds.clock_is_set:
            _check_charged_once(state)
        if state.is_calm:
            self._check_settles(state)

    def _check_settles(self, state: State) -> None:
        """Without customers and faults, everything settles, and no charge is forgotten."""
        path = []
        while (key := self.key(state)) not in self._settles:
            path.append(key)
            after = _next_quiet_step(state)
            if after is None:
                _check_settled(state)
                break
            if len(path) > _MAX_QUIET_STEPS:
                raise ViolationError("nothing is under way, and yet it never settles")
            state = after
        self._settles.update(path)


def _without_irrelevant_details(attempt: Attempt) -> Attempt:
    """Return the same attempt for all that differ only in what cannot matter any more."""
    has_ended = attempt.state not in IN_FLIGHT | AWAITING_CUSTOMER
    inquiry = attempt.inquiry
    if inquiry is not None and inquiry.asked_by_operator is not None:
        still_matches = inquiry.asked_by_operator.matches(attempt.snapshot)
        inquiry = inquiry._replace(asked_by_operator=attempt.snapshot if still_matches else None)
    if inquiry is not None and inquiry.answer in (ProviderAnswer.PAID, ProviderAnswer.UNKNOWN):
        inquiry = inquiry._replace(past_in_flight_window=True)
    recorded = attempt.recorded
    if recorded is not None:
        answer = recorded_answer(attempt)
        is_relevant = answer is not None and attempt.state not in CHARGED
        recorded = (answer, attempt.snapshot, True) if answer is not None and is_relevant else None
    return attempt._replace(
        age=WINDOW if has_ended and attempt.age is not None else attempt.age,
        in_flight=tuple(
            request if request.on_network else request._replace(age=WINDOW) for request in attempt.in_flight
        ),
        inquiry=inquiry,
        recorded=recorded,
    )


def _check_step(action: Action, before: State, after: State) -> None:
    status = before.intent
    for event in after.events:
        if (status, _STATUS_OF_EVENT[event]) not in _ALLOWED_CHANGES:
            raise ViolationError(f"{action}: the event {event} after {status}")
        status = _STATUS_OF_EVENT[event]
    if status is not after.intent:
        raise ViolationError(f"{action}: the events end with {status}, the intent is {after.intent}")
    if after.events and status is IntentStatus.REQUIRES_PAYMENT_METHOD and after.is_expired:
        raise ViolationError(f"{action}: came back after its time, and was not canceled at once")
    if before.is_expired and action.name in CLICKS_THAT_PAY:
        raise ViolationError(f"{action}: the checkout took a payment after expires_at")
    for old, new in zip(before.attempts, after.attempts, strict=False):
        if old.state in CHARGED and new.state is not old.state:
            raise ViolationError(f"{action}: an attempt that was {old.state} became {new.state}")


def _check_state(state: State) -> None:
    states = [attempt.state for attempt in state.attempts]
    in_flight = sum(one in IN_FLIGHT for one in states)
    succeeded = state.intent is IntentStatus.SUCCEEDED
    _require(state.intent is not IntentStatus.CANCELED or state.is_expired, "canceled before its time")
    _require(states.count(AttemptState.PAID) == succeeded, "succeeded exactly if one attempt is paid")
    _require(AttemptState.DUPLICATE not in states or succeeded, "a duplicate of an intent that is not paid")
    _require(
        in_flight + sum(one in AWAITING_CUSTOMER for one in states) <= 1, "two attempts are open at once"
    )
    _require(
        succeeded or in_flight == (state.intent is IntentStatus.PROCESSING),
        "processing, and no attempt is in flight, or the other way round",
    )
    for attempt in state.attempts:
        _require(attempt.state not in CHARGED or attempt.charge is Charge.PAID, "paid without a charge")
        _require(attempt.times_charged < 2, "an attempt was charged twice")
        _require(
            attempt.state not in IN_FLIGHT
            or attempt.is_inquiry_planned
            or attempt.method not in HAS_STATUS_CALL,
            "in flight, and nobody will ask the provider",
        )


def _check_charged_once(state: State) -> None:
    _require(
        sum(_is_charged_unexpectedly(attempt) for attempt in state.attempts) <= 1,
        "two charges, although the bank declined none and the customer gave up none",
    )


def _is_charged_unexpectedly(attempt: Attempt) -> bool:
    return attempt.charge is Charge.PAID and not attempt.was_declined and not attempt.is_given_up


def _next_quiet_step(state: State) -> State | None:
    """Return the state after the next thing that happens by itself, or None if nothing is left to happen.

    The bank notifies only of charges that no request of ours caused. Operators decide only what cannot be asked.
    """
    state = state._replace(events=())
    for index, attempt in enumerate(state.attempts):
        is_notified = attempt.method is Method.PAGE or attempt.was_declined
        if is_notified and attempt.charge is Charge.PAID and attempt.state not in CHARGED:
            _, notified = next(actions.notify(state, index))
            if notified != state:
                return notified
        if attempt.is_inquiry_planned and attempt.age == WINDOW:
            (_, asked), *_ = actions.inquire(state, index, for_operator=False)
            *_, (_, settled) = actions.inquire(asked, index, for_operator=False)
            if settled.attempts[index] != attempt:
                return settled
        if attempt.state in IN_FLIGHT and not attempt.is_inquiry_planned:
            decided = next(actions.decide(state, index), None)
            if decided is not None:
                return decided[1]
    for step in (*actions.run_expiry(state), *actions.pass_time(state)):
        return step[1]
    return None


def _check_settled(state: State) -> None:
    _require(
        not any(attempt.state in IN_FLIGHT for attempt in state.attempts), "stuck: an attempt never settles"
    )
    for attempt in state.attempts:
        _require(
            attempt.charge is not Charge.PAID or attempt.state in CHARGED, "a charge is forgotten for ever"
        )
    is_paid = any(attempt.charge is Charge.PAID for attempt in state.attempts)
    expected = IntentStatus.SUCCEEDED if is_paid else IntentStatus.CANCELED
    _require(state.intent is expected, f"ends as {state.intent}, must be {expected}")


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise ViolationError(promise)

"""The state of the payment model: one intent, its attempts, what is on the network, and the bank's ledger."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from shared.domain.attempts.decision_rules import RecordedAnswer
from shared.domain.attempts.states import ANSWER_TIMEOUT, IN_FLIGHT_WINDOW, AttemptSnapshot, AttemptState
from shared.domain.attempts.states import ProviderAnswer as Answer
from shared.domain.intents.states import EventType, IntentStatus

TICK = ANSWER_TIMEOUT
"""The clock moves in steps of the shortest time after which anything is decided differently."""
WINDOW = IN_FLIGHT_WINDOW // TICK
"""The in-flight window in ticks. Older requests are all alike, so ages stop there."""
_NOW = datetime(2027, 1, 1, tzinfo=UTC)


class Method(StrEnum):
    CARD = "card"
    """Starting it may charge, or the bank asks for a code."""
    WALLET = "wallet"
    """A code is sent first; entering it may charge."""
    WALLET_WITHOUT_STATUS = "wallet of a provider without a status call"
    """The provider also charges each request by itself: two requests of one attempt can charge twice."""
    PAGE = "provider's page"
    """The customer pays there. The provider has no status call."""


INITIAL_STATE = {
    Method.CARD: AttemptState.SENT,
    Method.WALLET: AttemptState.AWAITING_CODE,
    Method.WALLET_WITHOUT_STATUS: AttemptState.AWAITING_CODE,
    Method.PAGE: AttemptState.AWAITING_REDIRECT,
}
HAS_STATUS_CALL = frozenset({Method.CARD, Method.WALLET})


class Charge(StrEnum):
    """The attempt in the bank's ledger."""

    NONE = "no charge"
    OPEN = "open"
    """It waits for a code, or for the customer on its page."""
    PAID = "paid"
    DECLINED = "declined"


class Request(NamedTuple):
    """A request to the provider, and the process that sent it."""

    number: int
    """As in ProviderRequest."""
    is_start: bool
    """Whether it starts the attempt. Otherwise it confirms a code."""
    age: int
    """Ticks since it was recorded as sent."""
    on_network: bool
    """Whether it may still arrive at the provider."""
    awaits_response: bool
    """Whether its process waits for the response."""
    response: Answer | None = None
    """What its process is about to settle."""
    is_provider_away: bool = False
    """Whether the response says that nothing was sent."""


class Inquiry(NamedTuple):
    """A status inquiry that is not settled yet."""

    number: int
    past_in_flight_window: bool
    asked_by_operator: AttemptSnapshot | None
    """The attempt when the provider was asked for an operator."""
    answer: Answer | None = None
    """None until the bank has answered."""


class Attempt(NamedTuple):
    method: Method
    state: AttemptState
    requests: int = 0
    """provider_requests."""
    age: int | None = None
    """Ticks since sent_at."""
    is_inquiry_planned: bool = False
    """Whether next_verify_at is set."""
    codes_tried: int | None = None
    """None if there is no code challenge."""
    in_flight: tuple[Request, ...] = ()
    inquiry: Inquiry | None = None
    recorded: tuple[RecordedAnswer, AttemptSnapshot, bool] | None = None
    """The answer that an operator may decide with, what it is about, and whether it came after the in-flight window."""
    charge: Charge = Charge.NONE
    times_charged: int = 0
    was_declined: bool = False
    """Whether the bank has declined it at some time. It may settle it as paid later."""
    was_code_refused: bool = False
    """Whether the provider has refused a code, and may notify of that as declined. Another code may follow."""
    is_given_up: bool = False
    """Whether the customer or an operator chose to give up the provider's page, which may still be paid."""

    @property
    def snapshot(self) -> AttemptSnapshot:
        return AttemptSnapshot(self.state, self.requests)

    @property
    def sent_at(self) -> datetime | None:
        return None if self.age is None else now() - self.age * TICK


class State(NamedTuple):
    intent: IntentStatus
    ticks_left: int
    """Until expires_at."""
    attempts: tuple[Attempt, ...]
    events: tuple[EventType, ...] = ()
    """The events that the last action recorded."""

    @property
    def is_expired(self) -> bool:
        return self.ticks_left == 0

    @property
    def is_calm(self) -> bool:
        """Whether no request, response or inquiry is under way."""
        return not any(attempt.in_flight or attempt.inquiry for attempt in self.attempts)


class Bounds(NamedTuple):
    """What limits the model. Everything else is unlimited: repeated notifications, inquiries, crashes, time."""

    attempts: int
    requests: int
    """Requests of an attempt that may charge."""
    ticks: int
    """Ticks until the intent expires."""
    methods: tuple[Method, ...]
    has_operators: bool = True
    clock_is_set: bool = False
    """Whether the database's clock may be set forward at any time, so that a request arrives after its window."""


class Action(NamedTuple):
    name: str
    attempt: int | None = None
    """The attempt's place among the attempts, from 0."""
    detail: str = ""
    number: int | None = None
    """The number of the request."""

    def __str__(self) -> str:
        text = self.name if self.number is None else f"{self.name} (request {self.number})"
        if self.attempt is not None:
            text = f"attempt {self.attempt + 1}: {text}"
        return f"{text}: {self.detail}" if self.detail else text


Step = tuple[Action, State]


def now() -> datetime:
    """Return the model's current time: ages are relative to it."""
    return _NOW


def describe(state: State) -> str:
    lines = [f"intent {state.intent}, expires in {state.ticks_left} ticks"]
    for attempt in state.attempts:
        parts = [f"{attempt.method}: {attempt.state}, {attempt.requests} requests, bank: {attempt.charge}"]
        if attempt.age is not None:
            parts.append(f"sent {attempt.age} ticks ago")
        if attempt.is_inquiry_planned:
            parts.append("inquiry planned")
        parts += [_describe_request(request) for request in attempt.in_flight]
        if attempt.inquiry is not None:
            parts.append(f"inquiry under way, answer {attempt.inquiry.answer or 'none yet'}")
        if attempt.recorded is not None:
            parts.append(f"recorded answer {attempt.recorded[0]}")
        if attempt.times_charged > 1:
            parts.append(f"charged {attempt.times_charged} times")
        lines.append(", ".join(parts))
    return "\n       ".join(lines)


def _describe_request(request: Request) -> str:
    where = ["on the network"] if request.on_network else []
    if request.awaits_response:
        where.append("its process waits")
    if request.response is not None:
        where.append(f"its process has {request.response}")
    return f"request {request.number}: {' and '.join(where)}"

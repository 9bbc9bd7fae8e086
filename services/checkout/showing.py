"""Which page a customer sees, from how the intent and its last attempt stand. Pure."""

from enum import StrEnum

from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import State


class Showing(StrEnum):
    READY = "ready"
    CODE = "code"
    REDIRECT_OPEN = "redirect_open"
    PROCESSING = "processing"
    PAID = "paid"
    EXPIRED = "expired"


_WHEN = {
    State.SUCCEEDED: Showing.PAID,
    State.PROCESSING: Showing.PROCESSING,
    State.CANCELED: Showing.EXPIRED,
}

_TO_GO_ON_WITH = {
    AttemptState.AWAITING_CODE: Showing.CODE,
    AttemptState.AWAITING_REDIRECT: Showing.REDIRECT_OPEN,
}


def what_to_show(
    status: State, *, is_over: bool, attempt: AttemptState | None, can_go_on: bool, wants_change: bool
) -> Showing:
    """`can_go_on`: a code was sent, or the address of the provider's page is known; a crash can come before that.

    `wants_change`: the customer would rather pay in another way.
    """
    if status in _WHEN:
        return _WHEN[status]
    if is_over:
        return Showing.EXPIRED
    if attempt is None or wants_change or not can_go_on:
        return Showing.READY
    return _TO_GO_ON_WITH.get(attempt, Showing.READY)

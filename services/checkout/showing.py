"""Which page a customer sees, from how the intent and its last attempt stand. Pure."""

from enum import StrEnum

from shared.attempts.states import AttemptState
from shared.intents.states import State


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


def what_to_show(
    status: State, *, is_over: bool, attempt: AttemptState | None, has_challenge: bool, wants_change: bool
) -> Showing:
    """`wants_change`: the customer would rather pay in another way than go on with what is open."""
    if status in _WHEN:
        return _WHEN[status]
    if is_over:
        return Showing.EXPIRED
    if attempt is AttemptState.AWAITING_CODE and has_challenge and not wants_change:
        return Showing.CODE
    if attempt is AttemptState.AWAITING_REDIRECT and not wants_change:
        return Showing.REDIRECT_OPEN
    return Showing.READY

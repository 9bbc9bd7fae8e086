"""What deliveries can be told apart by: status, event, and the kind of the last answer; in one number. Pure.

The SQL function delivery_facet makes the same number of a row, and an index finds the newest of each.
"""

from enum import StrEnum

from shared.domain.intents.states import EventType

FACET_SQL = "delivery_facet(status, event, last_status_code, last_failure)"
"""Written so everywhere, for the index has it so."""


class Answered(StrEnum):
    """How the receiver answered last."""

    NOT_TRIED = "not_tried"
    NOTHING = "nothing"
    """There was no answer, or nothing to ask: no connection, no URL."""
    SUCCESS = "2xx"
    REDIRECT = "3xx"
    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    OTHER = "other"
    """A number that HTTP does not know."""


STATUSES = ("pending", "succeeded", "failed")
EVENTS = (EventType.SUCCEEDED, EventType.CANCELED)
_ANSWERS = {
    Answered.NOT_TRIED: 0,
    Answered.NOTHING: 1,
    Answered.SUCCESS: 2,
    Answered.REDIRECT: 3,
    Answered.CLIENT_ERROR: 4,
    Answered.SERVER_ERROR: 5,
    Answered.OTHER: 6,
}


def facets(
    status: str | None = None, event: str | None = None, answered: Answered | None = None
) -> list[int]:
    """All facets that these have together; None stands for any."""
    return [
        100 * (1 + STATUSES.index(one_status)) + 10 * (1 + EVENTS.index(EventType(one_event))) + number
        for one_status in ([status] if status else STATUSES)
        for one_event in ([event] if event else EVENTS)
        for one_answer, number in _ANSWERS.items()
        if answered in (None, one_answer)
    ]

"""Why a try has no status code, and how much of an answer is kept. Pure."""

from enum import StrEnum

from shared.domain.intents.states import EventType

RESPONSE_BODY_LIMIT = 16 * 1024
NO_URL = "no_url"
"""Beside the failures of tries: a delivery that ended without one, for its application's URL was removed."""


class TryFailure(StrEnum):
    DNS = "dns"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    """No connection, for another reason than a refusal: no route, or no socket left on our side."""
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN_ANSWER = "broken_answer"
    BLOCKED_ADDRESS = "blocked_address"


FACET_SQL = "delivery_facet(status, event, last_status_code, last_failure)"
"""Written so everywhere, for the index has it so."""


class ResponseClass(StrEnum):
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
    ResponseClass.NOT_TRIED: 0,
    ResponseClass.NOTHING: 1,
    ResponseClass.SUCCESS: 2,
    ResponseClass.REDIRECT: 3,
    ResponseClass.CLIENT_ERROR: 4,
    ResponseClass.SERVER_ERROR: 5,
    ResponseClass.OTHER: 6,
}


def matching_facets(
    status: str | None = None, event: str | None = None, answered: ResponseClass | None = None
) -> list[int]:
    """All facets that these have together; None stands for any."""
    return [
        100 * (1 + STATUSES.index(one_status)) + 10 * (1 + EVENTS.index(EventType(one_event))) + number
        for one_status in ([status] if status else STATUSES)
        for one_event in ([event] if event else EVENTS)
        for one_answer, number in _ANSWERS.items()
        if answered in (None, one_answer)
    ]

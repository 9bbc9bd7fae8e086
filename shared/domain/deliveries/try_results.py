"""Results of tries: failure reasons, classes of responses, and facets that combine them for filters. Pure.

A facet is one number for the status, event and last response of a delivery. The SQL function delivery_facet computes
the same number, a trigger stores it in the column of that name, and an index finds the newest deliveries of each facet.
The numbers here must be those of that function: a row whose facet is not listed here would appear in no filtered list
and would never be resent in bulk. To deliver a new event, add it to _EVENT_NUMBERS and replace the function in a new
revision of the schema. tests/dashboard/test_facets.py compares both.
"""

from enum import StrEnum

from shared.domain.intents.states import EventType

RESPONSE_BODY_LIMIT = 16 * 1024
NO_URL = "no_url"
"""Stored like a TryFailure for a delivery that ended without a try because its application's URL was removed."""
FACET_SQL = "delivery_facet"
"""The column of the index. It is stored, because row-level security keeps an index on an expression from being used."""


class TryFailure(StrEnum):
    """Why a try has no status code."""

    DNS = "dns"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    """No connection for another reason than a refusal: no route, or no socket left on our side."""
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN_ANSWER = "broken_answer"
    BLOCKED_ADDRESS = "blocked_address"
    PROXY_UNREACHABLE = "proxy_unreachable"
    """The egress proxy gave no complete answer: no connection to it, no TLS with it, not in time, or nonsense."""
    PROXY_REFUSED = "proxy_refused"
    """The egress proxy refused to connect: its password is wrong, or its rules forbid the address."""
    PROXY_ERROR = "proxy_error"
    """The egress proxy answered 5xx: it has a fault, or could not connect to the address."""


PROXY_FAILURES = frozenset({TryFailure.PROXY_UNREACHABLE, TryFailure.PROXY_REFUSED, TryFailure.PROXY_ERROR})
"""Failures on our side of the endpoint. They are retried like others, but do not make an endpoint a failing one."""


class ResponseClass(StrEnum):
    """The class of the last response to a delivery."""

    NOT_TRIED = "not_tried"
    NOTHING = "nothing"
    """No response: the try failed, or there was no URL."""
    SUCCESS = "2xx"
    REDIRECT = "3xx"
    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    OTHER = "other"
    """A status code outside of the classes of HTTP."""


_STATUS_NUMBERS = {"pending": 1, "succeeded": 2, "failed": 3}
_EVENT_NUMBERS = {EventType.SUCCEEDED: 1, EventType.CANCELED: 2}
STATUSES = tuple(_STATUS_NUMBERS)
EVENTS = tuple(_EVENT_NUMBERS)
"""The events that are delivered to merchants. The intake creates deliveries for these and no others."""
_RESPONSE_NUMBERS = {
    ResponseClass.NOT_TRIED: 0,
    ResponseClass.NOTHING: 1,
    ResponseClass.SUCCESS: 2,
    ResponseClass.REDIRECT: 3,
    ResponseClass.CLIENT_ERROR: 4,
    ResponseClass.SERVER_ERROR: 5,
    ResponseClass.OTHER: 6,
}


def matching_facets(
    status: str | None = None, event: str | None = None, response: ResponseClass | None = None
) -> list[int]:
    """Return all facets with this status, event and response; None matches any."""
    return [
        100 * _STATUS_NUMBERS[one_status] + 10 * _EVENT_NUMBERS[EventType(one_event)] + number
        for one_status in ([status] if status else STATUSES)
        for one_event in ([event] if event else EVENTS)
        for one_class, number in _RESPONSE_NUMBERS.items()
        if response in (None, one_class)
    ]

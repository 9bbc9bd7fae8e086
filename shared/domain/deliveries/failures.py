"""Why a try has no status code, and how much of an answer is kept. Pure."""

from enum import StrEnum

ANSWER_LIMIT = 16 * 1024
NO_URL = "no_url"
"""Beside the failures of tries: a delivery that ended without one, for its application's URL was removed."""


class Failure(StrEnum):
    DNS = "dns"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    """No connection, for another reason than a refusal: no route, or no socket left on our side."""
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN_ANSWER = "broken_answer"
    BLOCKED_ADDRESS = "blocked_address"

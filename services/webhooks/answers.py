"""What came of one try to deliver a webhook (§6.6). Pure."""

from enum import StrEnum

import msgspec

ANSWER_LIMIT = 16 * 1024


class Failure(StrEnum):
    """Why a try has no status code."""

    DNS = "dns"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    """No connection, for another reason than a refusal: no route, or no socket left on our side."""
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN_ANSWER = "broken_answer"
    BLOCKED_ADDRESS = "blocked_address"


class Answer(msgspec.Struct, frozen=True):
    began_at: float
    """As `time.time()`."""
    duration_ms: int
    status_code: int | None
    """Of the final answer, once its headers were complete; what became of its body does not matter."""
    failure: Failure | None
    """None exactly when there is a status code."""
    body: bytes
    """As it was received, without decoding, cut off at ANSWER_LIMIT."""

    @property
    def is_success(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300

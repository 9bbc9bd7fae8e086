"""What came of one try to deliver a webhook (§6.6). Pure."""

import msgspec

from shared.domain.deliveries.failures import Failure


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

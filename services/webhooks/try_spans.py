"""The span of a try: from when its request leaves until its answer is there. Of its URL, only the host."""

from urllib.parse import urlsplit

from services.webhooks.answers import Answer
from services.webhooks.tries import Try
from shared.domain.messages import DeliveryDue
from shared.platform.tracing.spans import Attributes, Kind, Span, begin, is_on

_PORTS = {"http": 80, "https": 443}
_ABANDONED = "abandoned"


def begin_try(one: Try) -> Span | None:
    """None where it has no trace."""
    if one.trace is None or not is_on():
        return None
    assert one.post is not None
    host, port = _host_and_port(one.post.url)
    attributes: Attributes = {
        "http.request.method": "POST",
        "server.address": host,
        "server.port": port,
        "mizan.delivery": one.delivery_id,
        "mizan.step": one.wanted.step if isinstance(one.wanted, DeliveryDue) else "resend",
    }
    return begin("POST webhook", Kind.CLIENT, one.trace, attributes)


def end_try(one: Try, answer: Answer | None) -> None:
    """Without an answer, somebody else may make it again."""
    span, one.span = one.span, None
    assert span is not None
    if answer is None:
        span.end(_ABANDONED)
        return
    if answer.status_code is not None:
        span.note({"http.response.status_code": answer.status_code})
    span.end(None if answer.is_success else answer.failure or str(answer.status_code))


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:  # nothing is sent there, and the answer says why
        return "", 0

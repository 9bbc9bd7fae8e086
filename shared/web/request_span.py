"""The span of a request, where requests are traced: begun with it, or once it is known whose trace it belongs to."""

from contextvars import ContextVar
from time import time_ns
from typing import TYPE_CHECKING

from structlog.contextvars import bind_contextvars

from shared.tracing.spans import Attributes, Kind, Span, begin, is_on, make_current
from shared.tracing.traceparent import sane, trace_id_of
from shared.web.operations import OPERATIONS_PATHS

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_request: ContextVar["RequestSpan | None"] = ContextVar("request", default=None)


def request_span(environ: "WSGIEnvironment") -> "RequestSpan | None":
    """None where nothing is traced: always, or what tells nobody anything."""
    if not is_on():
        return None
    path = environ.get("PATH_INFO", "")
    return None if path in OPERATIONS_PATHS or path.startswith("/static/") else RequestSpan(environ)


def join_trace(trace: str | None, attributes: Attributes) -> None:
    """The request is about something that has a trace, or has none: then it has none either."""
    request = _request.get() if is_on() else None
    if request is not None and trace is not None:
        request.begin(trace, attributes)


class RequestSpan:
    def __init__(self, environ: "WSGIEnvironment") -> None:
        method = environ["REQUEST_METHOD"]
        self._method = method if method in _METHODS else "_OTHER"
        self._from_caller = sane(environ.get("HTTP_TRACEPARENT"))
        self._began_ns = time_ns()
        self._span: Span | None = None
        _request.set(self)

    def begin_with_caller(self) -> None:
        """In the caller's trace, or as the first of a new one."""
        self.begin(self._from_caller, {})

    def begin(self, parent: str | None, attributes: Attributes) -> None:
        if self._span is not None:
            return
        noted = {"http.request.method": self._method, **attributes}
        self._span = begin(self._method, Kind.SERVER, parent, noted, self._began_ns)
        make_current(self._span)
        if self._span is not None:
            bind_contextvars(trace_id=trace_id_of(self._span.trace))

    def end(self, route: str | None, status: str) -> str | None:
        """The id of its trace, if it had one."""
        _request.set(None)
        make_current(None)
        if self._span is None:
            return None
        outcome: dict[str, str | int] = {"http.response.status_code": int(status)}
        if route is not None:  # never the path: somebody may have put a secret into it
            self._span.rename(f"{self._method} {route}")
            outcome["http.route"] = route
        self._span.note(outcome)
        self._span.end(status if status >= "500" else None)
        return trace_id_of(self._span.trace)

"""What a request carries: its id (on the response and on all log lines) and its trace span."""

import random
import re
from contextvars import ContextVar
from time import time_ns
from typing import TYPE_CHECKING

from flask import request
from structlog.contextvars import bind_contextvars

from shared.platform.tracing.spans import Attributes, Kind, Span, is_tracing, set_current_span, start_span
from shared.platform.tracing.traceparent import trace_id_of, valid_traceparent
from shared.platform.web.health import OPERATIONS_PATHS

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

REQUEST_ID_HEADER = "X-Request-Id"
_ENVIRON_KEY = "mizan.request_id"
_VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_request: ContextVar["RequestSpan | None"] = ContextVar("request", default=None)


def assign_request_id(environ: "WSGIEnvironment") -> str:
    """Return the caller's id if it is valid, or a new one, and store it in the WSGI environment."""
    given = environ.get("HTTP_X_REQUEST_ID", "")
    request_id: str = given if _VALID_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"
    environ[_ENVIRON_KEY] = request_id
    return request_id


def current_request_id() -> str:
    """Return the id of the current request."""
    request_id: str = request.environ[_ENVIRON_KEY]
    return request_id


def start_request_span(environ: "WSGIEnvironment") -> "RequestSpan | None":
    """Return None if tracing is off, and for health checks, metrics and static files."""
    if not is_tracing():
        return None
    path = environ.get("PATH_INFO", "")
    return None if path in OPERATIONS_PATHS or path.startswith("/static/") else RequestSpan(environ)


def join_trace(trace: str | None, attributes: Attributes) -> None:
    """Make the current request part of the trace of what it is about. Without a trace, it has no span."""
    request = _request.get() if is_tracing() else None
    if request is not None and trace is not None:
        request.start(trace, attributes)


class RequestSpan:
    """The span of a request. It starts once its trace is known, and counts from the request's arrival."""

    def __init__(self, environ: "WSGIEnvironment") -> None:
        method = environ["REQUEST_METHOD"]
        self._method = method if method in _METHODS else "_OTHER"
        self._caller_trace = valid_traceparent(environ.get("HTTP_TRACEPARENT"))
        self._started_ns = time_ns()
        self._span: Span | None = None
        _request.set(self)

    def start_from_caller(self) -> None:
        """Start in the caller's trace, or as the first span of a new one."""
        self.start(self._caller_trace, {})

    def start(self, parent: str | None, attributes: Attributes) -> None:
        if self._span is not None:
            return
        all_attributes = {"http.request.method": self._method, **attributes}
        self._span = start_span(self._method, Kind.SERVER, parent, all_attributes, self._started_ns)
        set_current_span(self._span)
        if self._span is not None:
            bind_contextvars(trace_id=trace_id_of(self._span.trace))

    def end(self, route: str | None, status: str) -> str | None:
        """End the span and return the id of its trace, if it has one."""
        if self._span is None:
            return None
        attributes: dict[str, str | int] = {"http.response.status_code": int(status)}
        if route is not None:  # never the path: it may contain a secret
            self._span.rename(f"{self._method} {route}")
            attributes["http.route"] = route
        self._span.set_attributes(attributes)
        self._span.end(status if status >= "500" else None)
        return trace_id_of(self._span.trace)

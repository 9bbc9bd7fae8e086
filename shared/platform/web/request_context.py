"""Gives every request an id: on its answer, on its log lines, and the caller's own if that is sane."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import time_ns
from typing import TYPE_CHECKING

from flask import request
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from shared.platform.tracing.spans import Attributes, Kind, Span, begin, is_on, make_current
from shared.platform.tracing.traceparent import sane, trace_id_of
from shared.platform.web.operations import OPERATIONS_PATHS

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

REQUEST_ID_HEADER = "X-Request-Id"
_ENVIRON_KEY = "mizan.request_id"
_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id_of(environ: "WSGIEnvironment") -> str:
    """The caller's id or a new one, kept in the environment too."""
    given = environ.get("HTTP_X_REQUEST_ID", "")
    request_id: str = given if _SANE.fullmatch(given) else secrets.token_hex(16)
    environ[_ENVIRON_KEY] = request_id
    return request_id


def current_request_id() -> str:
    """The id of the request being answered."""
    request_id: str = request.environ[_ENVIRON_KEY]
    return request_id


@contextmanager
def only_context(**ids: str) -> Iterator[None]:
    """A fresh log context: what a request leaves bound must not reach the thread's next one."""
    before = get_contextvars()
    if before:
        clear_contextvars()
    bind_contextvars(**ids)
    try:
        yield
    finally:
        clear_contextvars()
        if before:
            bind_contextvars(**before)


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

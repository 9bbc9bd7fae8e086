"""The WSGI middleware of every service: request id, metrics, trace span, and one access log line per request."""

import re
from collections.abc import Callable, Iterable
from contextvars import Context
from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram
from structlog.contextvars import bind_contextvars

from shared.platform.logs import log_buffered
from shared.platform.redaction import redact_text
from shared.platform.web.health import OPERATIONS_PATHS
from shared.platform.web.request_context import (
    REQUEST_ID_HEADER,
    assign_request_id,
    start_request_span,
)

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOGGER = "web.access"
ROUTE = "mizan.route"
"""The key in the WSGI environment for the route of a request that was answered before it reached Flask."""
_NO_RESPONSE = "500"
_MAX_PATH = 300
# Words, a version, a uuid: nothing that could be a secret. Searching a path for secrets costs as much as a small query.
_SAFE_PATH = re.compile(r"(?:/(?:[a-z-]{1,30}|v\d|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))*")
_LABELS = ("service", "method", "route", "status")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

REQUESTS = Counter("mizan_http_requests", "HTTP requests answered.", _LABELS)
DURATION = Histogram(
    "mizan_http_request_duration_seconds",
    "Time to answer an HTTP request.",
    _LABELS,
    # From the API's 2 ms to a payment that waits for a bank.
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40),
)


class RequestMiddleware:
    def __init__(self, app: "WSGIApplication", service: str, *, joins_traces: bool = False) -> None:
        """With `joins_traces`, the view names the trace of a request, and the caller's traceparent is ignored."""
        self._app = app
        self._joins_traces = joins_traces
        self._metrics = RequestMetrics(service)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        # What a request binds, such as ids for its log lines, must not reach the next request of its thread.
        return Context().run(self._respond, environ, start_response)

    def _respond(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        started = perf_counter()
        request_id = assign_request_id(environ)
        bind_contextvars(request_id=request_id)
        status, route = _NO_RESPONSE, None
        span = start_request_span(environ)

        def start_with_id(
            status_line: str, headers: list[tuple[str, str]], exc_info: "OptExcInfo | None" = None
        ) -> Callable[[bytes], object]:
            nonlocal status, route
            status, route = status_line[:3], _route(environ)
            others = [header for header in headers if header[0].lower() != REQUEST_ID_HEADER.lower()]
            return start_response(status_line, [*others, (REQUEST_ID_HEADER, request_id)], exc_info)

        try:
            if span is not None and not self._joins_traces:
                span.start_from_caller()
            return self._app(environ, start_with_id)
        finally:
            seconds = perf_counter() - started
            self._metrics.count(environ["REQUEST_METHOD"], route, status, seconds)
            trace_id = None if span is None else span.end(route, status)
            log_request(environ, status, seconds, request_id, trace_id)


class RequestMetrics:
    def __init__(self, service: str) -> None:
        self._service = service
        self._series: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def count(self, method: str, route: str | None, status: str, seconds: float) -> None:
        # Never the path itself, nor an unknown method: each would be a new time series.
        key = (method if method in _METHODS else "other", route or "unmatched", f"{status[0]}xx")
        series = self._series.get(key)
        if series is None:
            labels = (self._service, *key)
            series = self._series[key] = REQUESTS.labels(*labels), DURATION.labels(*labels)
        series[0].inc()
        series[1].observe(seconds)


def log_request(
    environ: "WSGIEnvironment", status: str, seconds: float, request_id: str, trace_id: str | None = None
) -> None:
    """Write the access log line, without query and body. Successful health checks are not logged."""
    path = environ.get("PATH_INFO", "")[:_MAX_PATH]
    if path in OPERATIONS_PATHS and status < "400":
        return
    log_buffered(
        LOGGER,
        "request answered",
        {
            "method": _ascii(environ["REQUEST_METHOD"])[:20],
            "path": path if _SAFE_PATH.fullmatch(path) else _ascii(redact_text(path)),
            "status": int(status),
            "ms": round(seconds * 1000, 1),
            "remote_addr": environ.get("REMOTE_ADDR"),
            "request_id": request_id,
            **({} if trace_id is None else {"trace_id": trace_id}),
        },
    )


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _route(environ: "WSGIEnvironment") -> str | None:
    """Return the rule that matched. Flask's request, which has it, is in the environment until it has answered."""
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    return rule.rule if rule else environ.get(ROUTE)

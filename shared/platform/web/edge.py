"""One line for each request that was answered: what, how, how long, under which id. Never its query or body."""

import re
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

from shared.platform.logs import log_plainly
from shared.platform.redaction import redact_text
from shared.platform.web.operations import OPERATIONS_PATHS
from shared.platform.web.request_context import REQUEST_ID_HEADER, only_context, request_id_of, request_span

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

LOGGER = "web.access"
_MAX_PATH = 300
# Words, a version, a uuid: nothing that could be a secret. Searching a path costs as much as a small query.
_HARMLESS_PATH = re.compile(r"(?:/(?:[a-z-]{1,30}|v\d|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))*")


def tell_request(
    environ: "WSGIEnvironment", status: str, seconds: float, request_id: str, trace_id: str | None = None
) -> None:
    path = environ.get("PATH_INFO", "")[:_MAX_PATH]
    if path in OPERATIONS_PATHS and status < "400":
        return
    log_plainly(
        LOGGER,
        "request answered",
        {
            "method": _ascii(environ["REQUEST_METHOD"])[:20],
            "path": path if _HARMLESS_PATH.fullmatch(path) else _ascii(redact_text(path)),
            "status": int(status),
            "ms": round(seconds * 1000, 1),
            "remote_addr": environ.get("REMOTE_ADDR"),
            "request_id": request_id,
            **({} if trace_id is None else {"trace_id": trace_id}),
        },
    )


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


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


class RequestMetrics:
    def __init__(self, service: str) -> None:
        self._service = service
        self._series: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def count(self, method: str, route: str | None, status: str, seconds: float) -> None:
        # Never the path itself, nor a method somebody made up: each would be a new time series.
        named = (method if method in _METHODS else "other", route or "unmatched", f"{status[0]}xx")
        series = self._series.get(named)
        if series is None:
            labels = (self._service, *named)
            series = self._series[named] = REQUESTS.labels(*labels), DURATION.labels(*labels)
        series[0].inc()
        series[1].observe(seconds)


if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ROUTE = "mizan.route"
"""Where whoever answers ahead of Flask says which route that was."""
_NO_ANSWER = "500"


class Edge:
    def __init__(self, app: "WSGIApplication", service: str, *, joins_traces: bool = False) -> None:
        """`joins_traces`: whoever answers says whose trace a request belongs to; what its caller says is not heard."""
        self._app = app
        self._joins_traces = joins_traces
        self._metrics = RequestMetrics(service)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        started = perf_counter()
        request_id = request_id_of(environ)
        status, route = _NO_ANSWER, None
        span = request_span(environ)

        def start_with_id(
            status_line: str, headers: list[tuple[str, str]], exc_info: "OptExcInfo | None" = None
        ) -> Callable[[bytes], object]:
            nonlocal status, route
            status, route = status_line[:3], _route(environ)
            others = [header for header in headers if header[0].lower() != REQUEST_ID_HEADER.lower()]
            return start_response(status_line, [*others, (REQUEST_ID_HEADER, request_id)], exc_info)

        try:
            with only_context(request_id=request_id):
                if span is not None and not self._joins_traces:
                    span.begin_with_caller()
                return self._app(environ, start_with_id)
        finally:
            seconds = perf_counter() - started
            self._metrics.count(environ["REQUEST_METHOD"], route, status, seconds)
            trace_id = None if span is None else span.end(route, status)
            tell_request(environ, status, seconds, request_id, trace_id)


def _route(environ: "WSGIEnvironment") -> str | None:
    """The rule that matched. Flask's request, which knows it, is in the environment until the answer is made."""
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    return rule.rule if rule else environ.get(ROUTE)

"""What every request meets first and last: its id, its log line, its count, its time and, if traced, its span.

It wraps the whole application, so that no answer goes without them, whatever fails inside.
"""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING

from shared.web.access_log import tell_request
from shared.web.request_id import REQUEST_ID_HEADER, only_context, request_id_of
from shared.web.request_metrics import RequestMetrics
from shared.web.request_span import request_span

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

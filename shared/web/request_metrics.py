"""Counts and times requests by service, method, route and class of status."""

import time

from flask import Flask, g, request
from flask.wrappers import Response
from prometheus_client import Counter, Histogram

_LABELS = ("service", "method", "route", "status")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

REQUESTS = Counter("mizan_http_requests", "HTTP requests answered.", _LABELS)
DURATION = Histogram("mizan_http_request_duration_seconds", "Time to answer an HTTP request.", _LABELS)


def count_requests(app: Flask, service: str) -> None:
    @app.before_request
    def start_clock() -> None:
        g.request_started = time.perf_counter()

    @app.after_request
    def count(response: Response) -> Response:
        # Never the path itself, nor a method somebody made up: each would be a new time series.
        method = request.method if request.method in _METHODS else "other"
        route = request.url_rule.rule if request.url_rule else "unmatched"
        labels = (service, method, route, f"{response.status_code // 100}xx")
        REQUESTS.labels(*labels).inc()
        DURATION.labels(*labels).observe(time.perf_counter() - g.request_started)
        return response

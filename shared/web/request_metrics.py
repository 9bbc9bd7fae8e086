"""Counts and times requests by service, method, route and class of status."""

from prometheus_client import Counter, Histogram

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

"""Requests are counted by route, method and status, with labels that a caller cannot invent."""

import pytest
from flask import Flask
from prometheus_client import REGISTRY


def counted(method: str, route: str, status: str, sample: str = "mizan_http_requests_total") -> float:
    labels = {"service": "shop", "method": method, "route": route, "status": status}
    return REGISTRY.get_sample_value(sample, labels) or 0.0


@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        ("GET", "/orders/5", ("GET", "/orders/<int:number>", "2xx")),  # the route, not the path
        ("GET", "/broken", ("GET", "/broken", "5xx")),  # an unexpected error
        ("GET", "/explained", ("GET", "/explained", "4xx")),
        ("GET", "/orders/x", ("GET", "unmatched", "4xx")),  # no route
        ("MADEUP", "/x/y", ("other", "unmatched", "4xx")),  # an unknown method
    ],
)
def test_request_is_counted_and_timed_once(
    app: Flask, method: str, path: str, labels: tuple[str, str, str]
) -> None:
    """Counter and histogram agree."""
    timed = "mizan_http_request_duration_seconds_count"
    before = counted(*labels), counted(*labels, timed)
    app.test_client().open(path, method=method)
    assert (counted(*labels), counted(*labels, timed)) == (before[0] + 1, before[1] + 1)

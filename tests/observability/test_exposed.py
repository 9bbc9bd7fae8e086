"""Comparing the metrics of expressions with those that services export."""

import pytest

from tests.observability.exposed import read
from tests.observability.expressions import Named

PAGE = """\
# HELP a_total BoundedCount.
# TYPE a_total counter
a_total{kind="x"} 1.0
# HELP b_seconds Timed.
# TYPE b_seconds histogram
b_seconds_bucket{le="+Inf"} 1.0
b_seconds_count 1.0
b_seconds_sum 1.0
# HELP c Measured, with no value yet.
# TYPE c gauge
# HELP mizan_webhook_failed_total Known by its declaration.
# TYPE mizan_webhook_failed_total counter
"""


@pytest.mark.parametrize(
    ("metric", "labels", "lack"),
    [
        ("a_total", {"kind", "job"}, None),
        ("a_total", {"sort"}, "a_total has no label sort"),
        ("a", set(), "a is shown by no service"),  # the sample of the counter has another name
        ("b_seconds_bucket", {"le", "instance"}, None),
        ("b_seconds_count", {"le"}, "b_seconds_count has no label le"),
        ("c", set(), "c has no samples"),
        ("mizan_webhook_failed_total", {"reason"}, None),
        ("mizan_webhook_failed_total", {"why"}, "mizan_webhook_failed_total has no label why"),
        ("d", set(), "d is shown by no service"),
        ("up", {"job"}, None),  # Prometheus creates it
    ],
)
def test_missing_metrics_and_labels_are_named(metric: str, labels: set[str], lack: str | None) -> None:
    assert read([PAGE]).lacks(Named(metric, frozenset(labels))) == lack

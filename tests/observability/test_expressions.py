"""Parsing PromQL expressions, which other tests depend on."""

import pytest

from tests.observability.expressions import Named, named_in


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("max(a_seconds) > 300", {"a_seconds": set()}),
        ('sum by (x) (rate(a_total{y="1", z!~"b_total|c"}[5m])) > 0.05', {"a_total": {"x", "y", "z"}}),
        ("sum(a) / sum(b) > 1e3 and c unless d or e", {name: set() for name in "abcde"}),
        ("histogram_quantile(0.99, sum by (le) (rate(a_bucket[10m])))", {"a_bucket": {"le"}}),
        ('a{x="}{"} - on (y) b offset 5m', {"a": {"x", "y"}, "b": {"y"}}),
        ('a{x="\\"b"}', {"a": {"x"}}),
        # A label that the expression creates is not required.
        ('min by (s) (label_replace(a{j="1"},\n "s", "$1", "j", "(.*)") or b)', {"a": {"j"}, "b": set()}),
        ("time() - min by (g) (a_timestamp_seconds)", {"a_timestamp_seconds": {"g"}}),
    ],
)
def test_metrics_and_labels_of_an_expression_are_found(expression: str, named: dict[str, set[str]]) -> None:
    assert named_in(expression) == {Named(name, frozenset(labels)) for name, labels in named.items()}

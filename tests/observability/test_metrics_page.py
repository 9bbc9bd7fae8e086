"""docs/metrics.md lists every metric, with its type and labels, and no other."""

import re

from tests.observability.declared import all_metrics
from tests.readme.documents import ROOT, Document

_CODE = re.compile(r"`([^`]+)`")
ROWS = Document(ROOT / "docs" / "metrics.md").rows()


def test_metrics_page_lists_exactly_the_metrics_with_their_types_and_labels() -> None:
    listed = {name.strip("`"): (kind, _CODE.findall(labels)) for name, kind, labels, _ in ROWS}
    assert listed == {
        f"{name}_total" if metric.kind == "counter" else name: (metric.kind, list(metric.labels))
        for name, metric in all_metrics().items()
    }


def test_metrics_page_lists_each_metric_once_and_says_what_it_means() -> None:
    names = [name for name, *_ in ROWS]
    assert len(names) == len(set(names))
    assert all(meaning for *_, meaning in ROWS)

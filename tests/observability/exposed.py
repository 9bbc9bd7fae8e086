"""Reads what the services of a running stack export at /metrics."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.observability.declared import declared_labels, sample_names
from tests.observability.expressions import Named

OF_PROMETHEUS = frozenset({"up", "ALERTS"})
OF_A_KMS = frozenset({"mizan_kms_requests_total", "mizan_kms_failing"})
"""Declared only in processes whose keys are in a KMS; the stacks of tests have none."""
OF_EVERY_TARGET = frozenset({"job", "instance"})


@dataclass(frozen=True, slots=True)
class Exposed:
    labels: dict[str, frozenset[str]] = field(default_factory=dict)
    """The labels of each sample, by name."""
    known: set[str] = field(default_factory=set)
    """Names of samples, also of metrics that have none yet."""

    def lacks(self, named: Named) -> str | None:
        """Return what an expression needs and no service exports, or None if nothing is missing."""
        if named.metric in OF_PROMETHEUS:
            return None
        if named.metric not in self.known | OF_A_KMS:
            return f"{named.metric} is shown by no service"
        labels = self.labels.get(named.metric, declared_labels().get(named.metric))
        if labels is None:
            return f"{named.metric} has no samples"
        missing = named.labels - labels - OF_EVERY_TARGET
        return f"{named.metric} has no label {', '.join(sorted(missing))}" if missing else None


def texts(ports: Iterable[int]) -> list[str]:
    answers = [requests.get(f"http://127.0.0.1:{port}/metrics", timeout=30) for port in ports]
    for answer in answers:
        answer.raise_for_status()
    return [answer.text for answer in answers]


def read(pages: Iterable[str]) -> Exposed:
    exposed = Exposed()
    for page in pages:
        for family in text_string_to_metric_families(page):
            exposed.known.update(sample_names(family.name, family.type))
            for sample in family.samples:
                known = exposed.labels.get(sample.name, frozenset())
                exposed.labels[sample.name] = known | frozenset(sample.labels)
    return exposed

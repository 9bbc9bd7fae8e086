"""Finds every metric that the services declare, by importing all their modules."""

import pkgutil
from functools import cache
from importlib import import_module

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

import services
import shared

_NOT_TO_IMPORT = ("shared.platform.migrations.",)  # Alembic runs them


@cache
def declared() -> dict[str, MetricWrapperBase]:
    """Return all metrics by name, without the suffix of a counter."""
    for package in (services, shared):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_NOT_TO_IMPORT):
                import_module(module.name)
    return {
        metric._name: metric
        for metric in list(REGISTRY._collector_to_names)
        if isinstance(metric, MetricWrapperBase) and type(metric).__module__ == "prometheus_client.metrics"
    }


def sample_names(name: str, kind: str) -> set[str]:
    """Return the names of the samples of a metric."""
    return {
        "counter": {f"{name}_total"},
        "histogram": {f"{name}_bucket", f"{name}_sum", f"{name}_count"},
        "summary": {name, f"{name}_sum", f"{name}_count"},
    }.get(kind, {name})


def declared_labels() -> dict[str, frozenset[str]]:
    """Return the labels of each sample, by name."""
    found: dict[str, frozenset[str]] = {}
    for name, metric in declared().items():
        for sample in sample_names(name, metric._type or ""):
            own = {"le"} if sample.endswith("_bucket") and metric._type == "histogram" else set()
            found[sample] = frozenset({*metric._labelnames, *own})
    return found

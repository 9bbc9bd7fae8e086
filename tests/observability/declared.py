"""Finds every metric that the services declare, by importing all their modules."""

import pkgutil
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

import services
import shared
from services.monitor.inspection.metrics import InspectionCollector
from services.monitor.inspection.snapshots import SystemState

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


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    kind: str
    labels: tuple[str, ...]


class _InspectorWithoutSnapshots:
    """Makes the monitor's collector return its metrics without samples."""

    def state(self) -> SystemState:
        return SystemState()

    def ages_s(self, now: datetime) -> dict[str, float]:
        return {}


def all_metrics() -> dict[str, MetricDefinition]:
    """Return the declared metrics and those that the monitor computes at a scrape, by name."""
    computed = InspectionCollector(_InspectorWithoutSnapshots())  # type: ignore[arg-type]
    return {
        **{
            name: MetricDefinition(metric._type or "", tuple(metric._labelnames))
            for name, metric in declared().items()
        },
        **{
            family.name: MetricDefinition(family.type, tuple(family._labelnames))
            for family in computed.collect()
        },
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

"""Metrics follow the naming conventions, and work with several worker processes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import Histogram

from stack.services import SERVICES
from tests.observability.declared import declared
from tests.observability.files import ROOT

SHORT_UNITS = re.compile(r"_(ms|millis\w*|us|secs?|minutes?|hours?|days?|kb|mb|kib|mib|percent)(_|$)")
TAKEN_LABELS = frozenset({"job", "instance", "le", "quantile", "severity", "alertname"})
ADDED_BY_PROMETHEUS = ("_total", "_count", "_sum", "_bucket", "_created")


@pytest.mark.parametrize("name", sorted(declared()))
def test_metric_follows_the_naming_conventions(name: str) -> None:
    """Names start with mizan, are lower case, use base units, and lack the suffixes that Prometheus adds."""
    metric = declared()[name]
    assert re.fullmatch(r"mizan(_[a-z0-9]+)+", name)
    assert not SHORT_UNITS.search(name.removesuffix("_months_ahead"))
    assert not name.endswith(ADDED_BY_PROMETHEUS)
    assert metric._documentation
    if isinstance(metric, Histogram):
        assert name.endswith("_seconds"), "what is timed is in seconds"
    for label in metric._labelnames:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", label)
        assert label not in TAKEN_LABELS


LIST_GAUGES = """
import sys
from importlib import import_module
from prometheus_client import REGISTRY, Gauge
import_module(sys.argv[1])
for metric in list(REGISTRY._collector_to_names):
    if isinstance(metric, Gauge):
        print(metric._name, metric._multiprocess_mode)
"""


@pytest.mark.parametrize("service", [service.name for service in SERVICES if service.has_workers])
def test_gauges_of_services_with_workers_aggregate_live_processes_only(service: str, tmp_path: Path) -> None:
    """Otherwise there would be one series for each worker, also for workers that have ended."""
    env = shutil.which("env")
    assert env is not None
    listed = subprocess.run(
        [
            env,
            f"PROMETHEUS_MULTIPROC_DIR={tmp_path}",
            sys.executable,
            "-c",
            LIST_GAUGES,
            f"services.{service}.app",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for line in listed.splitlines():
        name, mode = line.split()
        assert mode.startswith("live"), name
        # granian does not report that a worker has ended.
        assert service != "api", f"{name} of a dead worker would stay"

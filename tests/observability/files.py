"""Reads the files of observability/: alerts, the tests of the alerts, and the dashboard."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "observability/prometheus"
ALERTS_FILE = PROMETHEUS / "alerts.yml"
TESTS_FILES = (PROMETHEUS / "alerts_test.yml", PROMETHEUS / "slow_alerts_test.yml")
DASHBOARD_FILE = ROOT / "observability/grafana/mizan.json"


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    expression: str
    waits: str
    """Its `for`; empty where it fires at once."""
    labels: dict[str, str]
    annotations: dict[str, str]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of an alert in promtool's tests: whether it fires."""

    alert: str
    fires: bool


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@cache
def alerts() -> list[Alert]:
    return [
        Alert(
            rule["alert"],
            rule["expr"],
            rule.get("for", ""),
            rule.get("labels", {}),
            rule.get("annotations", {}),
        )
        for group in read_yaml(ALERTS_FILE)["groups"]
        for rule in group["rules"]
    ]


@cache
def checks() -> list[Check]:
    return [
        Check(check["alertname"], bool(check["exp_alerts"]))
        for file in TESTS_FILES
        for test in read_yaml(file)["tests"]
        for check in test["alert_rule_test"]
    ]


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DASHBOARD_FILE.read_text())
    return read


def panels() -> list[dict[str, Any]]:
    """Return the panels without rows, which are only headings."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def panel_expressions() -> Iterator[tuple[str, str]]:
    """Yield the title and the query of each panel, with Grafana's rate interval filled in."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "1m")


def all_expressions() -> list[tuple[str, str]]:
    return [*((alert.name, alert.expression) for alert in alerts()), *panel_expressions()]

"""Every panel of the Grafana dashboard is complete, has valid queries, and agrees with the alerts."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.observability.expressions import named_in
from tests.observability.files import alerts, dashboard, panel_expressions, panels
from tests.observability.prometheus_tools import find_tool

COMPARED = re.compile(r"\A(.+) [<>] ([\d.]+)\Z")
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def test_panels_have_unique_ids_and_do_not_overlap() -> None:
    shown: list[dict[str, Any]] = dashboard()["panels"]
    assert len({panel["id"] for panel in shown}) == len(shown)
    taken: set[tuple[int, int]] = set()
    for panel in shown:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_data_source_of_the_dashboard_can_be_chosen() -> None:
    (variable,) = dashboard()["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert "__inputs" not in dashboard()


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_panel_is_complete(panel: dict[str, Any]) -> None:
    """It has a title, a unit, the chosen data source, and a legend for each of several queries."""
    assert panel["title"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == SOURCE
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == SOURCE
        assert target["legendFormat"] or len(panel["targets"]) == 1
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_panel_titles_are_unique() -> None:
    titles = [panel["title"] for panel in dashboard()["panels"]]
    assert len(set(titles)) == len(titles)


def test_panels_turn_red_at_the_thresholds_of_the_alerts() -> None:
    """A panel with the query of an alert has the alert's threshold."""
    limits = {
        asked: float(number) for alert in alerts() for asked, number in COMPARED.findall(alert.expression)
    }
    compared = [panel for panel in panels() if panel["targets"][0]["expr"] in limits]
    assert len(compared) >= 15
    for panel in compared:
        limit = limits[panel["targets"][0]["expr"]]
        step = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]
        # For an alert on more than 0, the panel turns red at 1.
        assert step["value"] == (limit or 1), panel["title"]


def test_every_metric_of_an_alert_is_shown_in_a_panel() -> None:
    shown = {named.metric for _, expression in panel_expressions() for named in named_in(expression)}
    assert {named.metric for alert in alerts() for named in named_in(alert.expression)} <= shown


def test_queries_of_all_panels_are_valid_promql(tmp_path: Path) -> None:
    promtool = find_tool("promtool")
    rules = [
        {"record": f"panel:{number}", "expr": expression}
        for number, (_, expression) in enumerate(panel_expressions())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", file], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

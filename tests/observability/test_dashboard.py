"""The Grafana dashboard: every panel is complete, has valid queries, and agrees with the alerts."""

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


def test_every_panel_has_an_id_and_a_place_of_its_own() -> None:
    shown: list[dict[str, Any]] = dashboard()["panels"]
    assert len({panel["id"] for panel in shown}) == len(shown)
    taken: set[tuple[int, int]] = set()
    for panel in shown:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_whoever_imports_it_chooses_the_source() -> None:
    (variable,) = dashboard()["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert "__inputs" not in dashboard()


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_panel(panel: dict[str, Any]) -> None:
    """A title, a unit, the source that was chosen, and a name for each line where there are several."""
    assert panel["title"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"] == SOURCE
    assert panel["targets"]
    for target in panel["targets"]:
        assert target["datasource"] == SOURCE
        assert target["legendFormat"] or len(panel["targets"]) == 1
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_titles_are_used_once() -> None:
    titles = [panel["title"] for panel in dashboard()["panels"]]
    assert len(set(titles)) == len(titles)


def test_panels_turn_red_where_alerts_fire() -> None:
    """A panel that asks for what an alert compares with a number has that number as its threshold."""
    limits = {
        asked: float(number) for alert in alerts() for asked, number in COMPARED.findall(alert.expression)
    }
    compared = [panel for panel in panels() if panel["targets"][0]["expr"] in limits]
    assert len(compared) >= 15
    for panel in compared:
        limit = limits[panel["targets"][0]["expr"]]
        step = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]
        # Of things that are counted, one is red where the alert says "more than none".
        assert step["value"] == (limit or 1), panel["title"]


def test_what_alerts_are_about_can_be_seen() -> None:
    shown = {named.metric for _, expression in panel_expressions() for named in named_in(expression)}
    assert {named.metric for alert in alerts() for named in named_in(alert.expression)} <= shown


def test_prometheus_understands_every_panel(tmp_path: Path) -> None:
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

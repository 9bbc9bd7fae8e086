"""The alert rules are valid, tested with promtool, have a page for operators each, and agree with the monitor."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from services.monitor.inspection.rules import Thresholds
from stack.services import SERVICES
from tests.observability.files import (
    ALERTS_FILE,
    PROMETHEUS,
    TESTS_FILES,
    Alert,
    alerts,
    checks,
    read_yaml,
)
from tests.observability.prometheus_tools import find_tool
from tests.readme.documents import ROOT, Document

ALERTS = {alert.name: alert for alert in alerts()}
PAGES = ROOT / "docs/operations/alerts"


@pytest.fixture(scope="module")
def promtool() -> Path:
    return find_tool("promtool")


def run(promtool: Path, *arguments: str | Path) -> None:
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alert_rules_and_configuration_are_valid(promtool: Path) -> None:
    run(promtool, "check", "rules", "--lint-fatal", ALERTS_FILE)
    run(promtool, "check", "config", PROMETHEUS / "prometheus.yml")


@pytest.mark.long
def test_alert_rules_fire_when_they_should_and_not_before(promtool: Path) -> None:
    run(promtool, "test", "rules", *TESTS_FILES)


@pytest.mark.parametrize("alert", ALERTS.values(), ids=lambda alert: alert.name)
class TestEachAlert:
    def test_alert_has_a_severity_and_all_annotations(self, alert: Alert) -> None:
        assert alert.labels["severity"] in {"page", "ticket"}
        assert set(alert.annotations) == {"summary", "description", "runbook"}
        assert all(alert.annotations.values())

    def test_runbook_of_the_alert_is_its_own_page(self, alert: Alert) -> None:
        """The person who is paged opens this file."""
        assert alert.annotations["runbook"] == f"docs/operations/alerts/{alert.name}.md"
        assert (ROOT / alert.annotations["runbook"]).is_file()

    def test_page_says_what_it_means_what_to_check_and_what_to_do(self, alert: Alert) -> None:
        text = (PAGES / f"{alert.name}.md").read_text()
        headings = re.findall(r"^#+ .*", text, re.MULTILINE)
        assert headings == [f"# {alert.name}", "## What it means", "## What to check", "## What to do"]
        assert re.findall(r"^Severity: (\w+)\.", text, re.MULTILINE) == [alert.labels["severity"]]

    def test_alert_is_tested_firing_and_not_firing(self, alert: Alert) -> None:
        seen = Counter(check.fires for check in checks() if check.alert == alert.name)
        assert seen[True]
        assert seen[False]


def test_alert_names_are_unique() -> None:
    assert len(ALERTS) == len(alerts())


def test_each_alert_has_its_page_and_each_page_its_alert() -> None:
    assert {page.stem for page in PAGES.iterdir()} == {*ALERTS, "index"}


def test_index_lists_every_alert_with_its_severity() -> None:
    rows = Document(PAGES / "index.md").rows()
    assert [(name, severity) for name, severity, _ in rows] == [
        (f"[{alert.name}]({alert.name}.md)", alert.labels["severity"]) for alert in alerts()
    ]


@pytest.mark.parametrize(
    ("alert", "threshold"),
    [
        ("ConsumerLag", Thresholds().lag_s),
        ("OutboxOld", Thresholds().outbox_s),
        ("RetriesLate", Thresholds().retry_late_s),
        ("AttemptStuck", Thresholds().attempt_s),
        ("ExpiryLate", Thresholds().expiry_late_s),
        ("WebhookIntakeLate", Thresholds().intake_age_s),
        ("DeliveryOverdue", Thresholds().overdue_s),
    ],
)
def test_monitor_and_alerts_have_the_same_thresholds(alert: str, threshold: float) -> None:
    found = re.search(r"> ([\d.]+)$", ALERTS[alert].expression)
    assert found is not None
    assert float(found[1]) == threshold


def test_every_service_is_scraped_and_covered_by_service_down() -> None:
    """The targets use the ports of `make run`."""
    targets = {
        entry["labels"]["service"]: entry["targets"]
        for entry in read_yaml(PROMETHEUS / "targets" / "local.yml")
    }
    assert targets == {service.name: [f"127.0.0.1:{8000 + service.port_offset}"] for service in SERVICES}
    found = re.search(r'job=~"([^"]+)"', ALERTS["ServiceDown"].expression)
    assert found is not None
    assert set(found[1].split("|")) == set(targets)

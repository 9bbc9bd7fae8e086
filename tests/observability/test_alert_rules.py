"""The alert rules: valid, tested at their edges by promtool, with a runbook that exists, in step with the monitor."""

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


@pytest.fixture(scope="module")
def promtool() -> Path:
    return find_tool("promtool")


def run(promtool: Path, *arguments: str | Path) -> None:
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_configuration_are_valid(promtool: Path) -> None:
    run(promtool, "check", "rules", "--lint-fatal", ALERTS_FILE)
    run(promtool, "check", "config", PROMETHEUS / "prometheus.yml")


@pytest.mark.long
def test_rules_fire_when_they_should_and_not_before(promtool: Path) -> None:
    run(promtool, "test", "rules", *TESTS_FILES)


@pytest.mark.parametrize("alert", ALERTS.values(), ids=lambda alert: alert.name)
class TestEachAlert:
    def test_says_how_urgent_it_is_and_what_it_is_about(self, alert: Alert) -> None:
        assert alert.labels["severity"] in {"page", "ticket"}
        assert set(alert.annotations) == {"summary", "description", "runbook"}
        assert all(alert.annotations.values())

    def test_runbook_is_a_section_of_its_own(self, alert: Alert) -> None:
        """The person who is paged follows this link."""
        page, _, section = alert.annotations["runbook"].partition("#")
        assert section == alert.name.lower()
        assert section in Document(ROOT / page).anchors()

    def test_is_tested_both_ways(self, alert: Alert) -> None:
        """Each alert has a test in which it fires and one in which it does not."""
        seen = Counter(check.fires for check in checks() if check.alert == alert.name)
        assert seen[True]
        assert seen[False]


def test_names_are_used_once() -> None:
    assert len(ALERTS) == len(alerts())


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
def test_the_monitor_turns_red_at_the_same_numbers(alert: str, threshold: float) -> None:
    found = re.search(r"> ([\d.]+)$", ALERTS[alert].expression)
    assert found is not None
    assert float(found[1]) == threshold


def test_every_service_is_scraped_and_missed() -> None:
    """Each has a target at its port of `make run`, and is named where a missing one is noticed."""
    targets = {
        entry["labels"]["service"]: entry["targets"]
        for entry in read_yaml(PROMETHEUS / "targets" / "local.yml")
    }
    assert targets == {service.name: [f"127.0.0.1:{8000 + service.port_offset}"] for service in SERVICES}
    found = re.search(r'job=~"([^"]+)"', ALERTS["ServiceDown"].expression)
    assert found is not None
    assert set(found[1].split("|")) == set(targets)

"""The exported metrics have the names that alert rules and panels use, and outdated series disappear."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from services.monitor.inspection.inspector import SystemInspector
from services.monitor.inspection.metrics import register_metrics
from services.monitor.inspection.snapshots import PollResult
from shared.domain.topics import WEBHOOKS_DELAY, WEBHOOKS_DELIVER
from shared.platform.kafka.inspection import inspector as kafka_inspector
from shared.platform.settings import MonitorSettings
from tests.monitor.rows import make_attempt, make_delivery
from tests.monitor.snapshot_builders import group, kafka, lag
from tests.monitor.topic_records import Records
from tests.monitor.world import MonitorWorld, poll_all

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
NAMES = {
    "mizan_topic_records",
    "mizan_topic_partitions",
    "mizan_group_members",
    "mizan_group_lag_records",
    "mizan_group_lag_seconds",
    "mizan_group_stalled",
    "mizan_group_unattended",
    "mizan_delay_waiting_records",
    "mizan_delay_head_late_seconds",
    "mizan_dead_letters_recent",
    "mizan_attempts_in_progress",
    "mizan_attempts_undecided",
    "mizan_attempts_duplicate_open",
    "mizan_deliveries_pending",
    "mizan_applications_paused",
    "mizan_service_up",
    "mizan_service_ready",
    "mizan_monitor_snapshot_age_seconds",
    "mizan_endpoint_failing_applications",
}


@pytest.fixture
def inspector(world: MonitorWorld) -> Iterator[SystemInspector]:
    targets = MonitorSettings(targets=MappingProxyType({"api": "http://127.0.0.1:1"}))
    made = SystemInspector(replace(world.settings, monitor=targets), world.database)
    yield made
    made.stop()


def scrape(inspector: SystemInspector) -> tuple[set[str], Samples]:
    """Return the names of the families, and the samples by name and labels."""
    registry = CollectorRegistry()
    register_metrics(inspector, registry)
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    assert all(family.documentation and family.type == "gauge" for family in families)
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }
    return {family.name for family in families}, samples


def test_before_the_first_poll_metric_families_have_no_samples(inspector: SystemInspector) -> None:
    assert scrape(inspector) == (NAMES, {})


@pytest.mark.usefixtures("all_topics")
def test_every_polled_value_is_exported(world: MonitorWorld, inspector: SystemInspector) -> None:
    records = Records(world.settings.kafka)
    records.put(WEBHOOKS_DELIVER, 3, ago=timedelta(minutes=2), partition=1)
    records.put(WEBHOOKS_DELAY[0], 2, due_in=timedelta(minutes=-1))
    make_attempt(world, "unknown", can_be_asked=False)
    make_delivery(world, step=4)
    poll_all(inspector)
    names, samples = scrape(inspector)
    assert names == NAMES
    deliver = ("group", "webhooks.deliver")
    partition = (deliver, ("partition", "1"), ("topic", "webhooks.deliver"))
    assert samples["mizan_topic_records", (("topic", "webhooks.deliver"),)] == 3
    assert samples["mizan_topic_partitions", (("topic", "webhooks.deliver"),)] == 6
    assert samples["mizan_group_lag_records", partition] == 3
    assert samples["mizan_group_lag_seconds", partition] > 119
    assert samples["mizan_group_members", (deliver,)] == 0
    assert samples["mizan_group_unattended", (deliver,)] == 1
    assert samples["mizan_group_stalled", (deliver,)] == 0
    assert samples["mizan_group_unattended", (("group", "webhooks.slow"),)] == 0
    assert samples["mizan_delay_waiting_records", (("topic", "webhooks.delay.1"),)] == 2
    assert samples["mizan_delay_head_late_seconds", (("topic", "webhooks.delay.1"),)] > 59
    assert samples["mizan_dead_letters_recent", (("topic", "dead_letters"),)] == 0
    assert samples["mizan_attempts_in_progress", (("state", "unknown"),)] == 1
    assert samples["mizan_attempts_undecided", ()] == 1
    assert samples["mizan_deliveries_pending", (("step", "4"),)] == 1
    assert samples["mizan_deliveries_pending", (("step", "1"),)] == 0
    assert samples["mizan_service_up", (("service", "api"),)] == 0
    assert samples["mizan_service_ready", (("service", "api"),)] == 0
    ages = {
        labels: value
        for (name, labels), value in samples.items()
        if name == "mizan_monitor_snapshot_age_seconds"
    }
    assert {dict(labels)["source"] for labels in ages} == {"kafka", "database", "services"}
    assert all(0 <= age < 30 for age in ages.values())


def test_series_of_removed_partitions_and_of_old_results_disappear(inspector: SystemInspector) -> None:
    def note(*partitions: int) -> None:
        found = kafka(group("webhooks.deliver", *(lag(number) for number in partitions)))
        inspector.kafka._result = PollResult(found, datetime.now(UTC))

    note(0, 1)
    assert len(_lags(inspector)) == 2
    note(0)
    assert len(_lags(inspector)) == 1
    inspector.kafka._result = replace(inspector.kafka.result, at=datetime.now(UTC) - timedelta(minutes=1))
    assert _lags(inspector) == []


def test_source_that_never_succeeded_has_a_growing_snapshot_age(
    world: MonitorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_inspector, "_TIMEOUT_S", 0.2)
    nowhere = replace(world.settings, kafka=replace(world.settings.kafka, bootstrap_servers="127.0.0.1:1"))
    inspector = SystemInspector(nowhere, world.service_database)
    inspector.kafka.poll_once()
    _, samples = scrape(inspector)
    assert samples["mizan_monitor_snapshot_age_seconds", (("source", "kafka"),)] > 0
    inspector.stop()


def test_pages_without_a_registered_inspector_export_only_http_metrics(pages: MonitorWorld) -> None:
    """The process that starts the inspector registers its metrics; nothing else does."""
    guest = pages.person(is_operator=False)
    assert "mizan_http_requests_total" in guest.open("/metrics").text
    assert "mizan_topic_records" not in guest.response.text


def _lags(inspector: SystemInspector) -> list[str]:
    return [name for name, _ in scrape(inspector)[1] if name == "mizan_group_lag_records"]

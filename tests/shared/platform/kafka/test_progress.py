"""Lag and age of a consumer in the metrics."""

from collections.abc import Sequence
from threading import Event

from prometheus_client import REGISTRY

from shared.platform.kafka import clients
from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import Task
from tests.shared.platform.kafka.harness import GROUP, WORK, Kafka, event, running
from tests.waiting import eventually


def test_lag_and_age_grow_while_records_wait_and_are_0_when_all_are_finished(kafka: Kafka) -> None:
    """Records that this process has not fetched yet count too."""
    group = clients.group_name(kafka.settings, GROUP)
    topic = clients.topic_name(kafka.settings, WORK.name)

    def total(metric: str) -> float:
        labels = [{"group": group, "topic": topic, "partition": str(n)} for n in range(WORK.partitions)]
        return sum(REGISTRY.get_sample_value(metric, each) or 0 for each in labels)

    open_gate = Event()

    def handle(tasks: Sequence[Task]) -> None:
        for task in tasks:
            if not open_gate.is_set():
                task.hold_until(task.record.timestamp + 1.5)

    kafka.put([event(n) for n in range(3_000)])
    with running(kafka.loop(BatchHandler(handle))):
        eventually(lambda: total("mizan_consumer_lag_records") == 3_000)
        eventually(lambda: total("mizan_consumer_oldest_age_seconds") > 1)
        open_gate.set()
        eventually(lambda: total("mizan_consumer_lag_records") == 0)
        assert total("mizan_consumer_oldest_age_seconds") == 0
    assert (
        REGISTRY.get_sample_value(
            "mizan_consumer_lag_records", {"group": group, "topic": topic, "partition": "0"}
        )
        is None
    ), "a partition that was given back is no longer ours to report"
    finished = {"group": group, "outcome": "finished"}
    assert REGISTRY.get_sample_value("mizan_consumer_records_total", finished) == 3_000

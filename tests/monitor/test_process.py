"""The monitor as a real process polls, exports metrics, and stops on a signal."""

from pathlib import Path

import pytest

from shared.platform.settings import Settings
from tests.servers import ServiceProcess
from tests.waiting import eventually

# One for each source: Kafka may be polled before the database.
TOLD = (
    'mizan_service_up{service="api"} 0.0',
    "mizan_topic_partitions{",
    "mizan_attempts_undecided 0.0",
    'mizan_monitor_snapshot_age_seconds{source="kafka"}',
)


@pytest.mark.stack
@pytest.mark.timeout(300)
def test_monitor_process_polls_exports_metrics_and_stops_on_sigterm(
    settings: Settings, repository_root: Path
) -> None:
    service = ServiceProcess(
        "services.monitor",
        repository_root,
        settings.database,
        settings.kafka,
        MIZAN_SECRET_KEYS=settings.secret_keys[0],
        MONITOR_TARGETS="api=http://127.0.0.1:1",
    )
    with service.running() as process:
        eventually(lambda: service.status() == 200, within=120, every=0.2)
        eventually(lambda: not [line for line in TOLD if line not in service.page("metrics")], every=0.2)
        process.terminate()
        assert process.wait(30) == 0

"""The monitor as the process it is: one, which looks by itself, tells what it sees, and ends when it is told to."""

from pathlib import Path

import pytest

from shared.settings import Settings
from tests.running_service import Service
from tests.waiting import eventually


@pytest.mark.timeout(300)
def test_it_looks_tells_and_ends(settings: Settings, repository_root: Path) -> None:
    service = Service(
        "services.monitor",
        repository_root,
        settings.database,
        settings.kafka,
        MIZAN_SECRET_KEYS=settings.secret_keys[0],
        MONITOR_TARGETS="api=http://127.0.0.1:1",
    )
    with service.running() as process:
        eventually(lambda: service.status() == 200, within=120, every=0.2)
        eventually(lambda: 'mizan_service_up{service="api"} 0.0' in service.page("metrics"), every=0.2)
        eventually(lambda: "mizan_topic_partitions{" in service.page("metrics"), every=0.2)
        told = service.page("metrics")
        assert "mizan_attempts_undecided 0.0" in told
        assert 'mizan_monitor_look_age_seconds{look="kafka"}' in told
        process.terminate()
        assert process.wait(30) == 0

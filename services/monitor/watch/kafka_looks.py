"""Looks at Kafka, and compares with the look before: how fast records flow, and whether groups get on."""

from services.monitor.watch.dead_counts import DeadCounts
from services.monitor.watch.flows import flows_between
from services.monitor.watch.seen import KafkaSeen
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.inspection.health import Judge
from shared.platform.kafka.inspection.inspector import KafkaWatcher
from shared.platform.kafka.inspection.snapshot import KafkaView
from shared.platform.settings import KafkaSettings


class KafkaLooks:
    """Makes its clients at the first look. For one thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._watcher: KafkaWatcher | None = None
        self._earlier: KafkaView | None = None
        self._judge = Judge()
        self._dead = DeadCounts(settings)

    def look(self) -> KafkaSeen:
        """Raises KafkaUnavailableError within seconds."""
        if self._watcher is None:
            self._watcher = KafkaWatcher(self._settings, ALL_TOPICS)
        view = self._watcher.look()
        dead = self._dead.of(view)
        flows = flows_between(self._earlier, view)
        self._earlier = view
        return KafkaSeen(view, self._judge.judge(view), flows, dead)

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

"""Looks at Kafka, and compares with the look before: how fast records flow, and whether groups get on."""

from services.monitor.watch.dead_counts import DeadCounts
from services.monitor.watch.flows import flows_between
from services.monitor.watch.seen import KafkaSeen
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.inspection.health import GroupHealthTracker
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.inspection.snapshot import KafkaSnapshot
from shared.platform.settings import KafkaSettings


class KafkaLooks:
    """Makes its clients at the first look. For one thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._inspector: KafkaInspector | None = None
        self._earlier: KafkaSnapshot | None = None
        self._health = GroupHealthTracker()
        self._dead = DeadCounts(settings)

    def look(self) -> KafkaSeen:
        """Raises KafkaUnavailableError within seconds."""
        if self._inspector is None:
            self._inspector = KafkaInspector(self._settings, ALL_TOPICS)
        view = self._inspector.inspect()
        dead = self._dead.of(view)
        flows = flows_between(self._earlier, view)
        self._earlier = view
        return KafkaSeen(view, self._health.assess(view), flows, dead)

    def close(self) -> None:
        if self._inspector is not None:
            self._inspector.close()
            self._inspector = None

"""Polls Kafka, the database and the services, each in a thread of its own, and keeps the last results."""

from dataclasses import replace
from datetime import datetime

from services.monitor.inspection.database import read_database
from services.monitor.inspection.history import History, HistoryRecorder, database_values, kafka_values
from services.monitor.inspection.kafka import KafkaReader
from services.monitor.inspection.poller import Poller
from services.monitor.inspection.services import check_services
from services.monitor.inspection.snapshots import DatabaseSnapshot, KafkaState, ServiceStatus, SystemState
from shared.platform.database.pool import Database
from shared.platform.settings import Settings

_POLL_EVERY_S = 5.0
_DATABASE_REST_FACTOR = 10.0
"""A slow database is polled less often."""


class SystemInspector:
    """The sources are polled independently: a poll that hangs does not stop the others."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._recorder = HistoryRecorder()
        self._kafka_reader = KafkaReader(settings.kafka)
        self.kafka: Poller[KafkaState] = Poller("kafka", self._poll_kafka, _POLL_EVERY_S)
        self.database: Poller[DatabaseSnapshot] = Poller(
            "database", self._poll_database, _POLL_EVERY_S, _DATABASE_REST_FACTOR
        )
        self.services: Poller[tuple[ServiceStatus, ...]] = Poller(
            "services", self._poll_services, _POLL_EVERY_S
        )

    def start(self) -> None:
        """Start the threads. Call it after fork, in the process that serves the pages."""
        for poller in self._pollers():
            poller.start()

    def stop(self) -> None:
        for poller in self._pollers():
            poller.stop()
        self._kafka_reader.close()

    def poll_once(self) -> SystemState:
        """Poll every source in this thread, and return what was found."""
        for poller in self._pollers():
            poller.poll_once()
        return self.state()

    def check(self) -> None:
        """Raise PollerStoppedError if a source is no longer polled. For /readyz."""
        for poller in self._pollers():
            poller.check()

    def state(self) -> SystemState:
        """Return the last results. Dead letters that were dismissed are not counted."""
        kafka, database = self.kafka.result, self.database.result
        if kafka.value is not None and database.value is not None:
            kafka = replace(kafka, value=kafka.value.without_dismissed(database.value.dismissed))
        return SystemState(kafka, database, self.services.result)

    def ages_s(self, now: datetime) -> dict[str, float]:
        """Return for each source how old its last snapshot is.

        Before the first snapshot it is the time since the first poll. Sources that were never polled are left out.
        """
        return {
            poller.name: max(0.0, (now - since).total_seconds())
            for poller in self._pollers()
            if (since := poller.result.at or poller.started_at) is not None
        }

    def history(self) -> History:
        return self._recorder.history()

    def _pollers(
        self,
    ) -> "tuple[Poller[KafkaState], Poller[DatabaseSnapshot], Poller[tuple[ServiceStatus, ...]]]":
        return self.kafka, self.database, self.services

    def _poll_kafka(self) -> KafkaState:
        state = self._kafka_reader.read()
        self._recorder.record(state.snapshot.at, kafka_values(state))
        return state

    def _poll_database(self) -> DatabaseSnapshot:
        snapshot = read_database(self._database)
        self._recorder.record(snapshot.now, database_values(snapshot))
        return snapshot

    def _poll_services(self) -> tuple[ServiceStatus, ...]:
        return check_services(self._settings.monitor.targets)

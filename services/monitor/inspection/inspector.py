"""Looks at everything, each in a thread of its own, and keeps what was seen."""

from datetime import datetime

from services.monitor.inspection.database import look_at_database
from services.monitor.inspection.history import History, Recorder, of_database, of_kafka
from services.monitor.inspection.kafka import KafkaLooks
from services.monitor.inspection.poller import Looker
from services.monitor.inspection.services import look_at_services
from services.monitor.inspection.snapshots import Figures, KafkaSeen, Seen, ServiceSeen
from shared.platform.database.pool import Database
from shared.platform.settings import Settings

_KAFKA_EVERY_S = 5.0
_DATABASE_EVERY_S = 5.0
_SERVICES_EVERY_S = 5.0
_RESTS = 10.0
"""A database under pressure is looked at the less often."""


class Watch:
    """What hangs in one look does not stop the others."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._recorder = Recorder()
        self._kafka = KafkaLooks(settings.kafka)
        self.kafka: Looker[KafkaSeen] = Looker("kafka", self._look_at_kafka, _KAFKA_EVERY_S)
        self.database: Looker[Figures] = Looker("database", self._look_at_database, _DATABASE_EVERY_S, _RESTS)
        self.services: Looker[tuple[ServiceSeen, ...]] = Looker(
            "services", self._look_at_services, _SERVICES_EVERY_S
        )

    def start(self) -> None:
        """In the process that serves the pages, after fork."""
        for looker in self._lookers():
            looker.start()

    def stop(self) -> None:
        for looker in self._lookers():
            looker.stop()
        self._kafka.close()

    def look_once(self) -> Seen:
        """At everything, here and now."""
        for looker in self._lookers():
            looker.look_once()
        return self.seen()

    def check(self) -> None:
        """For /readyz: raises when it no longer looks."""
        for looker in self._lookers():
            looker.check()

    def seen(self) -> Seen:
        return Seen(self.kafka.looked, self.database.looked, self.services.looked)

    def ages_s(self, now: datetime) -> dict[str, float]:
        """Of each look, how long ago one worked: since the first began, where none did; nothing before that."""
        return {
            looker.name: max(0.0, (now - since).total_seconds())
            for looker in self._lookers()
            if (since := looker.looked.at or looker.began_at) is not None
        }

    def history(self) -> History:
        return self._recorder.history()

    def _lookers(self) -> "tuple[Looker[KafkaSeen], Looker[Figures], Looker[tuple[ServiceSeen, ...]]]":
        return self.kafka, self.database, self.services

    def _look_at_kafka(self) -> KafkaSeen:
        found = self._kafka.look()
        self._recorder.note(found.view.at, of_kafka(found))
        return found

    def _look_at_database(self) -> Figures:
        found = look_at_database(self._database)
        self._recorder.note(found.now, of_database(found))
        return found

    def _look_at_services(self) -> tuple[ServiceSeen, ...]:
        return look_at_services(self._settings.monitor.targets)

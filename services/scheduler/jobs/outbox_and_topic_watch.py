"""Watches over the outbox and the topics: measures the outbox for operators, and reports missing topics."""

from prometheus_client import Gauge

from shared.domain.topics import ALL_TOPICS
from shared.platform.database.pool import Database
from shared.platform.kafka.topic_setup import check_topics
from shared.platform.settings import KafkaSettings

_TOPICS_INTERVAL_S = 60.0

WAITING = Gauge("mizan_outbox_rows", "Rows in the outbox (counted up to 100,000)")
AGE = Gauge("mizan_outbox_oldest_age_seconds", "Age of the oldest row in the outbox")

_OUTBOX_INTERVAL_S = 5.0
_MEASURE = """
select (select count(*) from (select from outbox limit 100000) as counted),
       coalesce((select extract(epoch from clock_timestamp() - created_at) from outbox order by id limit 1), 0)
"""


class OutboxWatch:
    name = "outbox-watch"

    def __init__(self, database: Database) -> None:
        self._database = database

    def run_once(self) -> float:
        with self._database.transaction() as connection:
            row = connection.execute(_MEASURE).fetchone()
        assert row is not None
        WAITING.set(row[0])
        AGE.set(float(row[1]))
        return _OUTBOX_INTERVAL_S

    def close(self) -> None:
        """The process closes the database."""


class TopicWatch:
    """Fails, and so shows in /readyz, while a topic is missing or differs: only `mizan topics` may create topics."""

    name = "topics"

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def run_once(self) -> float:
        check_topics(self._settings, ALL_TOPICS)
        return _TOPICS_INTERVAL_S

    def close(self) -> None:
        """There is nothing to close."""

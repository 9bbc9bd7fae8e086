"""Bulk replays: republishes the dead letters of the running replay, batch by batch, the oldest first."""

from shared.domain.dead_letters.replays import replay_batch
from shared.platform.database.pool import Database
from shared.platform.settings import KafkaSettings


class BulkReplays:
    name = "bulk-replays"

    def __init__(self, database: Database, settings: KafkaSettings) -> None:
        self._database = database
        self._settings = settings

    def run_once(self) -> float:
        """Replay a batch. Of several schedulers, one does it. Raises KafkaUnavailableError."""
        return replay_batch(self._database, self._settings)

    def close(self) -> None:
        """The process closes the database."""

"""Processes bulk replays of dead letters in batches, in a thread of the monitor's process.

Of several monitors only one does it. While Kafka or the database is unavailable, it waits and then continues.
"""

import logging
from threading import Event, Thread

from shared.domain.dead_letters.replays import replay_batch
from shared.platform.backoff import backoff_delay
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings

_log = logging.getLogger(__name__)


class Replayer:
    def __init__(self, database: Database, settings: KafkaSettings) -> None:
        self._database = database
        self._settings = settings
        self._stop = Event()
        self._failures = 0
        self._thread = Thread(target=self._run, name="replayer", daemon=True)

    def start(self) -> None:
        """Start the thread. Call it after fork, in the process that serves the pages."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current batch."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            pause = self._run_batch()

    def _run_batch(self) -> float:
        try:
            pause = replay_batch(self._database, self._settings)
        except (KafkaUnavailableError, DatabaseUnavailableError) as error:
            _log.warning("dead letters cannot be replayed now: %s", error)
            return self._pause()
        except Exception:  # noqa: BLE001  the edge of the loop: the thread must go on
            _log.exception("replaying dead letters failed; retrying")
            return self._pause()
        self._failures = 0
        return pause

    def _pause(self) -> float:
        self._failures += 1
        return backoff_delay(self._failures)

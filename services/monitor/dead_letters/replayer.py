"""Works off replays of many dead letters, a few at a time, in a thread of the monitor's process.

Of several monitors one does it. While Kafka or the database is away it waits, and goes on where it was.
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
        self._thread = Thread(target=self._work, name="replayer", daemon=True)

    def start(self) -> None:
        """In the process that serves the pages, after fork."""
        self._thread.start()

    def stop(self) -> None:
        """The batch that is under way is finished first."""
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            pause = self._turn()

    def _turn(self) -> float:
        try:
            pause = replay_batch(self._database, self._settings)
        except (KafkaUnavailableError, DatabaseUnavailableError) as error:
            _log.warning("dead letters are not replayed at the moment: %s", error)
            return self._pause()
        except Exception:  # noqa: BLE001  the edge of the loop: nobody else would go on
            _log.exception("dead letters could not be replayed; trying again")
            return self._pause()
        self._failures = 0
        return pause

    def _pause(self) -> float:
        self._failures += 1
        return backoff_delay(self._failures)

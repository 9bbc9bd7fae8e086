"""The thread that a consumer loop runs in."""

import logging
from threading import Event, Thread

from shared.platform.kafka.consumer_loop import ConsumerLoop

_log = logging.getLogger(__name__)


class ConsumerThread(Thread):
    """Runs a loop in a thread. If it ends without being told to, it sets `stop`, so that the process is restarted."""

    def __init__(self, name: str, loop: ConsumerLoop, stop: Event) -> None:
        super().__init__(name=name, daemon=True)
        self.loop = loop
        self.failed = False
        self._stop_all = stop

    def run(self) -> None:
        try:
            self.loop.run()
        except Exception:  # noqa: BLE001  the thread's edge
            self.failed = True
            _log.exception("consumer %s failed", self.name)
        finally:
            self._stop_all.set()

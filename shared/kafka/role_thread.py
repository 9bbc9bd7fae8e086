"""A consumer at work in a thread of its own."""

import logging
from threading import Event, Thread

from shared.kafka.loop import ConsumerLoop

_log = logging.getLogger(__name__)


class RoleThread(Thread):
    """When one ends that nobody asked to end, the whole process does, and is started again."""

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
            _log.exception("%s has ended", self.name)
        finally:
            self._stop_all.set()

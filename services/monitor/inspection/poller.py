"""One that looks again and again, in a thread of its own, and remembers what it saw last."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from services.monitor.inspection.snapshots import Looked
from shared.platform.redaction import redact_text

T = TypeVar("T")
_log = logging.getLogger(__name__)

_SILENT_S = 60.0
_LONGEST_REST_S = 15.0
_LONGEST_TROUBLE = 300


class LookerStoppedError(Exception):
    """What it shows is no longer looked at, though the process lives."""


class Looker(Generic[T]):
    def __init__(self, name: str, look: Callable[[], T], every_s: float, rests: float = 0.0) -> None:
        """A look that takes long is followed by a rest that is `rests` times as long."""
        self.name = name
        self._look = look
        self.began_at: datetime | None = None
        """When it was first to look."""
        self._every_s = every_s
        self._rests = rests
        self._looked: Looked[T] = Looked()
        self._came_round = monotonic()
        self._stop = Event()
        self._thread: Thread | None = None
        self._looking = Lock()

    @property
    def looked(self) -> Looked[T]:
        return self._looked

    def start(self) -> None:
        self._came_round = monotonic()
        self._thread = Thread(target=self._run, name=f"watch-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Waits for the look under way, for a while."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    def look_once(self) -> None:
        with self._looking:
            at = datetime.now(UTC)
            self.began_at = self.began_at or at
            try:
                found = self._look()
            except Exception as error:  # noqa: BLE001  the edge of the loop; what is wrong is shown to people
                self._trouble(at, error)
            else:
                if self._looked.trouble is not None:
                    _log.info("%s can be looked at again", self.name)
                self._looked = Looked(found, datetime.now(UTC), None, at)
            self._came_round = monotonic()

    def check(self) -> None:
        """Raises when it no longer looks; that there is nothing to be seen is no reason."""
        if self._thread is None:
            return
        silent_s = monotonic() - self._came_round
        if not self._thread.is_alive():
            raise LookerStoppedError(f"nobody looks at {self.name} any more")
        if silent_s > _SILENT_S:
            raise LookerStoppedError(f"a look at {self.name} has taken {silent_s:.0f} s")

    def _run(self) -> None:
        while not self._stop.is_set():
            began = monotonic()
            self.look_once()
            took_s = monotonic() - began
            self._stop.wait(max(self._every_s - took_s, min(self._rests * took_s, _LONGEST_REST_S), 0.1))

    def _trouble(self, at: datetime, error: Exception) -> None:
        words = redact_text(str(error)).strip().partition("\n")[0][:_LONGEST_TROUBLE] or type(error).__name__
        if self._looked.trouble is None:
            _log.warning("%s cannot be looked at: %s", self.name, words)
        self._looked = Looked(self._looked.found, self._looked.at, words, at)

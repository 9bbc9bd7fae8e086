"""Polls one source again and again in a thread of its own, and keeps the last result."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from services.monitor.inspection.snapshots import PollResult
from shared.platform.redaction import redact_text

T = TypeVar("T")
_log = logging.getLogger(__name__)

_HANG_LIMIT_S = 60.0
_MAX_REST_S = 15.0
_MAX_ERROR_LENGTH = 300


class PollerStoppedError(Exception):
    """A source is no longer polled, although the process is alive."""


class Poller(Generic[T]):
    def __init__(self, name: str, poll: Callable[[], T], every_s: float, rest_factor: float = 0.0) -> None:
        """Poll every `every_s` seconds, and rest at least `rest_factor` times as long as the last poll took."""
        self.name = name
        self._poll = poll
        self.started_at: datetime | None = None
        """When the first poll started."""
        self._every_s = every_s
        self._rest_factor = rest_factor
        self._result: PollResult[T] = PollResult()
        self._last_poll_ended = monotonic()
        self._stop = Event()
        self._thread: Thread | None = None
        self._polling = Lock()

    @property
    def result(self) -> PollResult[T]:
        return self._result

    def start(self) -> None:
        self._last_poll_ended = monotonic()
        self._thread = Thread(target=self._run, name=f"poll-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait up to 10 seconds for the current poll to end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    def poll_once(self) -> None:
        with self._polling:
            at = datetime.now(UTC)
            self.started_at = self.started_at or at
            try:
                value = self._poll()
            except Exception as error:  # noqa: BLE001  the edge of the loop: the error is shown to operators
                self._keep_error(at, error)
            else:
                if self._result.error is not None:
                    _log.info("polling %s works again", self.name)
                self._result = PollResult(value, datetime.now(UTC), None, at)
            self._last_poll_ended = monotonic()

    def check(self) -> None:
        """Raise PollerStoppedError if the thread has ended or hangs. A poll that fails is no reason."""
        if self._thread is None:
            return
        silent_s = monotonic() - self._last_poll_ended
        if not self._thread.is_alive():
            raise PollerStoppedError(f"the thread that polls {self.name} has ended")
        if silent_s > _HANG_LIMIT_S:
            raise PollerStoppedError(f"a poll of {self.name} has taken {silent_s:.0f} s")

    def _run(self) -> None:
        while not self._stop.is_set():
            began = monotonic()
            self.poll_once()
            took_s = monotonic() - began
            self._stop.wait(max(self._every_s - took_s, min(self._rest_factor * took_s, _MAX_REST_S), 0.1))

    def _keep_error(self, at: datetime, error: Exception) -> None:
        text = redact_text(str(error)).strip().partition("\n")[0][:_MAX_ERROR_LENGTH] or type(error).__name__
        if self._result.error is None:
            _log.warning("polling %s failed: %s", self.name, text)
        self._result = PollResult(self._result.value, self._result.at, text, at)

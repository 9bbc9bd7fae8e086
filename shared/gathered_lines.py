"""Log lines that are many: gathered for a moment and written together, by a thread of their own.

A write lets other threads run, and under load that costs the writer more than the line is worth.
"""

from collections import deque
from collections.abc import Callable
from multiprocessing.util import Finalize
from threading import Event, Lock, Thread

_MOMENT_S = 0.05


class GatheredLines:
    """Nothing is lost when the process ends by itself; killed, it takes the last moment's lines along."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        # Where nobody reads what we write, the oldest are lost rather than all our memory.
        self._lines: deque[str] = deque(maxlen=20_000)
        self._some = Event()
        self._lock = Lock()
        self._writer: Thread | None = None

    def add(self, line: str) -> None:
        self._lines.append(line)
        if not self._some.is_set():
            self._some.set()
            if self._writer is None:
                self._start()

    def flush(self) -> None:
        with self._lock:
            self._some.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if lines:
                self._write("\n".join(lines))

    def _start(self) -> None:
        with self._lock:
            if self._writer is None:
                self._writer = Thread(target=self._run, name="log-lines", daemon=True)
                self._writer.start()
                # Also run where atexit is not: at the end of a process that multiprocessing started.
                Finalize(None, self.flush, exitpriority=0)

    def _run(self) -> None:
        pause = Event()
        while True:
            self._some.wait()
            pause.wait(_MOMENT_S)
            self.flush()

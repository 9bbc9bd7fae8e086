"""An interrupt that reached make alone: GNU make keeps it to itself, and waits for us for ever."""

import os
import signal
from pathlib import Path

_INTERRUPT = 1 << (signal.SIGINT - 1)


class InterruptedMake:
    """Make catches SIGINT until it has got one. Only where /proc tells; elsewhere it never happened."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._caught = _catches_interrupts(self._parent)

    def happened(self) -> bool:
        return self._caught and not _catches_interrupts(self._parent)


def _catches_interrupts(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) & _INTERRUPT)

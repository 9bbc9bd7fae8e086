"""The live line of a run: each second on a terminal, where it replaces itself, and each 10 seconds elsewhere."""

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from chaos.faults import FaultInjector
from chaos.load.recorder import LoadCounters

_EVERY_SECONDS = 10.0


class LiveLine:
    def __init__(self, seconds: int, output: TextIO = sys.stdout) -> None:
        self._seconds = seconds
        self._output = output
        self._is_terminal = output.isatty()
        self._next_at = 0.0
        self._began = time.monotonic()

    def show(self, elapsed: float, faults: FaultInjector, load: LoadCounters, verdict: str) -> None:
        under_way = f" ({faults.under_way} under way)" if faults.under_way else ""
        failed = f", {faults.failed} of them not as planned" if faults.failed else ""
        self._show(
            f"{elapsed:4.0f} of {self._seconds} s | faults {faults.begun}{under_way}{failed} | "
            f"orders {load.orders}, payments {load.payments}, unanswered {load.lost} | webhooks {load.receipts}"
            + (f" | {verdict}" if verdict else "")
        )

    def show_settling(self, waits_for: Sequence[str]) -> None:
        self._show(f"settling: {', '.join(waits_for) or 'nothing is under way'}")

    def note(self, text: str) -> None:
        """Print a line that stays."""
        start = "\r\x1b[K" if self._is_terminal else ""
        print(f"{start}{time.monotonic() - self._began:6.1f} s  {text}", file=self._output, flush=True)

    def _show(self, line: str) -> None:
        if self._is_terminal:
            print(f"\r\x1b[K{line}", end="", file=self._output, flush=True)
        elif time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + _EVERY_SECONDS
            print(line, file=self._output, flush=True)

"""What a person sees: the stack's own words, and every process's log lines under its name."""

import os
import sys
from collections.abc import Iterable

from stack.errors import StackError

COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
BOLD, RED = 1, 31


class Console:
    """Writes to standard output; goes silent, and lets the stack live on, when nobody reads it any more."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._colour_of: dict[str, int] = {}
        self._width = 0

    def name_processes(self, names: Iterable[str]) -> None:
        """Give each process its colour, and all of them one width."""
        for name in names:
            self._colour_of[name] = COLOURS[len(self._colour_of) % len(COLOURS)]
            self._width = max(self._width, len(name))

    def say(self, text: str) -> None:
        self._write(f"{self._paint('stack', BOLD)} {text}")

    def shout(self, text: str) -> None:
        self._write(f"{self._paint('stack', BOLD)} {self._paint(text, RED)}")

    def show(self, lines: str) -> None:
        self._write(lines)

    def log_line(self, name: str, line: str) -> None:
        self._write(f"{self._paint(name.ljust(self._width), self._colour_of.get(name, BOLD))} | {line}")

    def complain(self, error: StackError) -> None:
        self.shout(error.problem)
        self.say(error.remedy)

    def _paint(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text

    @staticmethod
    def _write(line: str) -> None:
        try:
            print(line, flush=True)
        except OSError:
            # The terminal was closed or the pipe's reader ended.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

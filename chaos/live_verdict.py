"""The verdict so far, for the live line: the judge reads the history now and then, in a process of low priority."""

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread

from chaos.history import read_history
from chaos.judge.verdict import judge

_SHORTEST_PAUSE_S = 15.0
_SHARE = 20
"""Judging takes at most about this part of the time: a long history takes seconds to read."""
_MOST_SECONDS = 120.0


class LiveVerdict:
    """Judges what can be judged before the end of a run. Starts at once; `stop` ends it."""

    def __init__(self, history: Path) -> None:
        self._history = history
        self._stopping = Event()
        self._text = ""
        self._thread = Thread(target=self._judge_again_and_again, name="verdict", daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """What the judge has found by now; empty before it has judged for the first time."""
        return self._text

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _judge_again_and_again(self) -> None:
        pause = _SHORTEST_PAUSE_S
        while not self._stopping.wait(pause):
            began = time.monotonic()
            text = self._judge()
            self._text = self._text if text is None else text
            pause = max(_SHORTEST_PAUSE_S, _SHARE * (time.monotonic() - began))

    def _judge(self) -> str | None:
        """Return the verdict, or None if there is none in time."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_send_verdict, args=(self._history, theirs), daemon=True)
        process.start()
        theirs.close()
        deadline = time.monotonic() + _MOST_SECONDS
        try:
            while not ours.poll(0.5):
                if self._stopping.is_set() or time.monotonic() > deadline:
                    return None
            return str(ours.recv())
        except EOFError:
            return None
        finally:
            process.kill()
            process.join()
            ours.close()


def _send_verdict(history: Path, result: Connection) -> None:
    os.nice(19)
    result.send(describe_findings(history))


def describe_findings(history: Path) -> str:
    """Return the number of findings in a history that goes on, and the rules that they are against."""
    findings = judge(read_history(history)).findings
    if not findings:
        return "no findings so far"
    rules = sorted({finding.rule for finding in findings})
    return f"{len(findings)} findings: {', '.join(rules)}"

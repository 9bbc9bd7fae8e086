"""supervisord can be stopped and interrupted at any time."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import NoReturn

import pytest

from stack.programs import Program
from stack.stop_signals import StopRequested
from stack.supervisor import Supervisor

pytestmark = pytest.mark.stack

SLEEPER = Program("sleeper", "sleepers", ("/bin/sleep", "600"), stop_seconds=60)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor([SLEEPER], {}, directory=tmp_path, logs=tmp_path)
    made.wait_ready()
    yield made
    made.shut_down()


def test_process_is_stopped_right_after_its_start(supervisor: Supervisor) -> None:
    """Regression: a process that was just forked is still a copy of supervisord, which ignores the signal."""
    for _ in range(60):
        supervisor.start("sleeper")
        began = monotonic()
        supervisor.stop_group("sleepers")
        assert monotonic() - began < SLEEPER.stop_seconds / 2


@pytest.mark.kills
def test_call_interrupted_by_a_signal_does_not_break_the_next(supervisor: Supervisor) -> None:
    """A stop signal may arrive before supervisord has responded."""

    def stop(*_: object) -> NoReturn:
        raise StopRequested

    before = signal.signal(signal.SIGUSR1, stop)
    os.kill(supervisor.pid, signal.SIGSTOP)
    try:
        with pytest.raises(StopRequested):
            Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            supervisor.start("sleeper")
    finally:
        os.kill(supervisor.pid, signal.SIGCONT)
        signal.signal(signal.SIGUSR1, before)
    assert set(supervisor.states()) == {"sleeper"}
    supervisor.stop_group("sleepers")
    assert not supervisor.states()["sleeper"].pid

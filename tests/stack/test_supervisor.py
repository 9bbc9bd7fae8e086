"""supervisord does what it is told, whenever that is."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import NoReturn

import pytest

from stack.launcher import StopRequested
from stack.programs import Program
from stack.supervisor import Supervisor

pytestmark = pytest.mark.stack

SLEEPER = Program("sleeper", "sleepers", ("/bin/sleep", "600"), stop_seconds=60)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor([SLEEPER], {}, directory=tmp_path, logs=tmp_path)
    made.wait_ready()
    yield made
    made.shut_down()


def test_one_that_has_hardly_been_started_is_stopped_at_once(supervisor: Supervisor) -> None:
    """It is a copy of supervisord for a moment, which would take the signal for its own and forget it."""
    for _ in range(60):
        supervisor.start("sleeper")
        began = monotonic()
        supervisor.stop_group("sleepers")
        assert monotonic() - began < SLEEPER.stop_seconds / 2


@pytest.mark.kills
def test_a_question_that_a_signal_interrupted_spoils_none_after_it(supervisor: Supervisor) -> None:
    """A stop may come while supervisord has yet to answer."""

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

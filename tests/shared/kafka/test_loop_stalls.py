"""A worker that looks healthy and has stopped consuming is noticed."""

from collections.abc import Sequence
from threading import Event
from time import monotonic, time

import pytest

from shared.db.pool import DatabaseUnavailableError
from shared.kafka import progress
from shared.kafka.handlers import BatchHandler
from shared.kafka.progress import ConsumerStalledError
from shared.kafka.tasks import Task
from tests.shared.kafka.harness import Kafka, event, running
from tests.waiting import complaint, eventually


def test_a_consumer_that_stopped_consuming_is_noticed(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that hangs: the process looks healthy, but the heartbeat says it is not."""
    monkeypatch.setattr(progress, "POLL_LIMIT_S", 0.5)
    go_on = Event()

    def hang(_tasks: Sequence[Task]) -> None:
        go_on.wait(20)

    kafka.put([event(0)])
    loop = kafka.loop(BatchHandler(hang))
    with running(loop):
        eventually(lambda: "has not polled" in complaint(loop.progress.check, ConsumerStalledError))
        go_on.set()
        eventually(lambda: not complaint(loop.progress.check, ConsumerStalledError))


def test_a_consumer_that_polls_but_finishes_nothing_is_noticed(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records wait, none gets done: not ready. A partition that is merely held is fine."""
    monkeypatch.setattr(progress, "STALL_LIMIT_S", 1.5)

    def fail(_tasks: Sequence[Task]) -> None:
        raise DatabaseUnavailableError("for ever")

    def hold(tasks: Sequence[Task]) -> None:
        for task in tasks:
            task.hold_until(time() + 3600)

    kafka.put([event(0)])
    failing = kafka.loop(BatchHandler(fail))
    with running(failing):
        eventually(lambda: "finishes none" in complaint(failing.progress.check, ConsumerStalledError))
    holding = kafka.loop(BatchHandler(hold))
    with running(holding):
        until = monotonic() + 4
        eventually(lambda: complaint(holding.progress.check, ConsumerStalledError) or monotonic() > until)
        assert not complaint(holding.progress.check, ConsumerStalledError)

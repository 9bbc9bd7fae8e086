"""The inspector polls each source in its own thread, so that none blocks another."""

from dataclasses import replace
from datetime import UTC, datetime
from threading import Event
from types import MappingProxyType

import pytest

from services.monitor.inspection import poller as poller_module
from services.monitor.inspection.inspector import SystemInspector
from services.monitor.inspection.poller import Poller, PollerStoppedError
from services.monitor.inspection.rules import find_problems
from services.monitor.inspection.snapshots import DeadLetterCounts
from shared.domain.dead_letters.dismissals import dismiss_dead_letter
from shared.platform.kafka.inspection import inspector as kafka_inspector
from shared.platform.settings import MonitorSettings
from tests.monitor.world import MonitorWorld
from tests.shared.domain.dead_letters.dead_letter_topic import AMAL, DeadLetterTopic
from tests.waiting import error_text, eventually


def test_every_source_is_polled_repeatedly(world: MonitorWorld) -> None:
    inspector = SystemInspector(world.settings, world.service_database)
    assert inspector.state().database.attempted_at is None
    inspector.start()
    try:
        eventually(
            lambda: (
                inspector.state().kafka.value
                and inspector.state().database.value
                and inspector.state().services.at
            )
        )
        inspector.check()
    finally:
        inspector.stop()


def test_a_hanging_poll_does_not_stop_the_others(
    world: MonitorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while, /readyz reports it."""
    monkeypatch.setattr(poller_module, "_HANG_LIMIT_S", 0.5)
    goes_on = Event()
    inspector = SystemInspector(world.settings, world.service_database)
    monkeypatch.setattr(inspector, "services", Poller("services", lambda: bool(goes_on.wait(30)) and (), 0.1))
    inspector.start()
    try:
        eventually(lambda: inspector.state().database.value)
        said = eventually(lambda: error_text(inspector.services.check, PollerStoppedError))
        assert "services" in said
    finally:
        goes_on.set()
        inspector.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_ended_poller_thread_is_reported() -> None:
    def die() -> None:
        raise SystemExit

    dead = Poller("kafka", die, 0.1)
    dead.start()
    assert (
        eventually(lambda: error_text(dead.check, PollerStoppedError))
        == "the thread that polls kafka has ended"
    )


def test_poll_errors_are_reported_without_secrets_and_polling_continues() -> None:
    problems: list[Exception] = [ValueError("password=hunter2hunter2\nsecond line"), KeyError()]

    def look() -> int:
        if problems:
            raise problems.pop(0)
        return 5

    looks = Poller("kafka", look, 0.1)
    looks.poll_once()
    assert looks.result.error
    assert "hunter2" not in looks.result.error
    assert "second" not in looks.result.error
    looks.poll_once()
    assert looks.result.error == "KeyError"
    assert looks.result.value is None
    looks.poll_once()
    now = looks.result
    assert (now.value, now.error) == (5, None)


def test_an_unavailable_source_does_not_make_the_monitor_unready(
    world: MonitorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_inspector, "_TIMEOUT_S", 0.2)
    nowhere = replace(world.settings.kafka, bootstrap_servers="127.0.0.1:1")
    settings = replace(
        world.settings,
        kafka=nowhere,
        monitor=MonitorSettings(targets=MappingProxyType({"api": "http://127.0.0.1:1"})),
    )
    inspector = SystemInspector(settings, world.service_database)
    inspector.start()
    try:
        eventually(lambda: inspector.state().kafka.error and inspector.state().services.value)
        inspector.check()
        assert [service.is_up for service in inspector.state().services.value or ()] == [False]
    finally:
        inspector.stop()


def test_dismissed_dead_letters_are_not_counted(
    world: MonitorWorld, dead_letter_topic: DeadLetterTopic
) -> None:
    """Dismissals of an earlier topic of the same name hide nothing in a recreated one."""
    dead_letter_topic.add_many(3)
    with world.database.transaction() as connection:
        dismiss_dead_letter(connection, world.settings.kafka, dead_letter_topic.look(1), "no matter", AMAL)
    inspector = SystemInspector(world.settings, world.service_database)

    def counts() -> DeadLetterCounts:
        state = inspector.poll_once()
        assert state.kafka.value is not None, state.kafka.error
        return state.kafka.value.dead_letters["dead_letters"]

    try:
        found = counts()
        assert (found.total, found.last_hour, found.last_day) == (3, 2, 2)
        (problem,) = [
            one for one in find_problems(inspector.state(), datetime.now(UTC)) if one.kind == "dead_letters"
        ]
        assert problem.count == 2
        world.run("update dead_letter_dismissals set topic_id = 'another'")
        assert counts().last_hour == 3
    finally:
        inspector.stop()

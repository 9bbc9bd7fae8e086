"""The watch as a whole: each look in a thread of its own, none of which stops another."""

from dataclasses import replace
from threading import Event
from types import MappingProxyType

import pytest

from services.monitor.inspection import poller as looker_module
from services.monitor.inspection.inspector import Watch
from services.monitor.inspection.poller import Looker, LookerStoppedError
from shared.platform.kafka.inspection import inspector
from shared.platform.settings import MonitorSettings
from tests.monitor.world import MonitorWorld
from tests.waiting import error_text, eventually


def test_everything_is_looked_at_again_and_again(world: MonitorWorld) -> None:
    watch = Watch(world.settings, world.database)
    assert watch.seen().database.tried_at is None
    watch.start()
    try:
        eventually(
            lambda: watch.seen().kafka.found and watch.seen().database.found and watch.seen().services.at
        )
        watch.check()
    finally:
        watch.stop()


def test_a_look_that_hangs_stops_no_other(world: MonitorWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """And /readyz says so after a while."""
    monkeypatch.setattr(looker_module, "_SILENT_S", 0.5)
    goes_on = Event()
    watch = Watch(world.settings, world.database)
    monkeypatch.setattr(watch, "services", Looker("services", lambda: bool(goes_on.wait(30)) and (), 0.1))
    watch.start()
    try:
        eventually(lambda: watch.seen().database.found)
        said = eventually(lambda: error_text(watch.services.check, LookerStoppedError))
        assert "services" in said
    finally:
        goes_on.set()
        watch.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_told() -> None:
    def die() -> None:
        raise SystemExit

    dead = Looker("kafka", die, 0.1)
    dead.start()
    assert eventually(lambda: error_text(dead.check, LookerStoppedError)) == "nobody looks at kafka any more"


def test_whatever_a_look_raises_is_told_without_secrets_and_the_next_one_is_made() -> None:
    troubles: list[Exception] = [ValueError("password=hunter2hunter2\nsecond line"), KeyError()]

    def look() -> int:
        if troubles:
            raise troubles.pop(0)
        return 5

    looks = Looker("kafka", look, 0.1)
    looks.look_once()
    assert looks.looked.trouble
    assert "hunter2" not in looks.looked.trouble
    assert "second" not in looks.looked.trouble
    looks.look_once()
    assert looks.looked.trouble == "KeyError"
    assert looks.looked.found is None
    looks.look_once()
    now = looks.looked
    assert (now.found, now.trouble) == (5, None)


def test_an_engine_that_is_away_is_no_reason_to_be_unready(
    world: MonitorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspector, "_TIMEOUT_S", 0.2)
    nowhere = replace(world.settings.kafka, bootstrap_servers="127.0.0.1:1")
    settings = replace(
        world.settings,
        kafka=nowhere,
        monitor=MonitorSettings(targets=MappingProxyType({"api": "http://127.0.0.1:1"})),
    )
    watch = Watch(settings, world.database)
    watch.start()
    try:
        eventually(lambda: watch.seen().kafka.trouble and watch.seen().services.found)
        watch.check()
        assert [service.is_up for service in watch.seen().services.found or ()] == [False]
    finally:
        watch.stop()

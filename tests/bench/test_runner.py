"""`make bench` shows progress, stores each figure at once, and loses one measurement only if one fails."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest

from bench import __main__ as command
from bench import runner as runner_module
from bench.figures import Figure
from bench.runner import FigureFile, Measure, Runner, UnknownMeasurementError, select_measurements
from bench.world import World
from tests.waiting import eventually

NO_WORLD = cast("World", None)


def measure_one(_world: World) -> Iterable[Figure]:
    yield Figure("one", 1.5, "a figure")


def measure_two_and_fail(_world: World) -> Iterable[Figure]:
    yield Figure("two", 2000.0, "a figure that is known before the error")
    raise ConnectionError("the service is gone")


def measure_three(_world: World) -> Iterable[Figure]:
    yield Figure("three", 3.0, "a figure after a failed measurement")


ALL: dict[str, Measure] = {"first": measure_one, "second": measure_two_and_fail, "third": measure_three}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "bench.json"


@pytest.fixture
def shown() -> list[str]:
    return []


@pytest.fixture
def runner(path: Path, shown: list[str]) -> Runner:
    return Runner(FigureFile(path, keeps_others=False), shown.append)


def test_failed_measurement_loses_only_itself(runner: Runner, path: Path, shown: list[str]) -> None:
    runner.run(ALL, NO_WORLD)
    assert json.loads(path.read_text()) == {"one": 1.5, "two": 2000.0, "three": 3.0}
    assert runner.failed == ["second"]
    assert any("second failed" in line and "the service is gone" in line for line in shown)


def test_each_figure_is_in_the_file_before_the_next_is_measured(runner: Runner, path: Path) -> None:
    seen: list[dict[str, float]] = []

    def measure(_world: World) -> Iterator[Figure]:
        for number in range(3):
            seen.append(json.loads(path.read_text()))
            yield Figure(f"figure_{number}", number, "")

    runner.run({"measure": measure}, NO_WORLD)
    assert [len(figures) for figures in seen] == [0, 1, 2]
    assert [path.name for path in path.parent.iterdir()] == ["bench.json"]


def test_interrupted_run_keeps_its_figures(runner: Runner, path: Path) -> None:
    def interrupt(_world: World) -> Iterable[Figure]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run({"first": measure_one, "second": interrupt}, NO_WORLD)
    assert json.loads(path.read_text()) == {"one": 1.5}


def test_progress_names_the_measurement_and_how_many_remain(runner: Runner, shown: list[str]) -> None:
    runner.run({"first": measure_one, "third": measure_three}, NO_WORLD)
    assert shown[0].startswith("first: 1 of 2, 1 more to come, 0:")
    assert shown[1] == "  one 1.5"
    assert shown[2].startswith("third: 2 of 2, 0 more to come, 0:")


def test_long_measurement_says_that_it_still_runs(
    runner: Runner, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "_REMINDER_S", 0.01)

    def measure(_world: World) -> Iterable[Figure]:
        eventually(lambda: any("still measuring slow, 0 more to come" in line for line in shown))
        return []

    runner.run({"slow": measure}, NO_WORLD)
    assert runner.failed == []


def test_selection_keeps_the_order_and_refuses_unknown_names() -> None:
    assert list(select_measurements(ALL, "")) == ["first", "second", "third"]
    assert list(select_measurements(ALL, "third, first,")) == ["first", "third"]
    with pytest.raises(UnknownMeasurementError, match=r"no measurement fifth.*first, second, third"):
        select_measurements(ALL, "third,fifth")


def test_figures_of_other_measurements_stay_if_only_some_are_run(path: Path) -> None:
    FigureFile(path, keeps_others=False).add(Figure("other", 7.0, ""))
    FigureFile(path, keeps_others=True).add(Figure("one", 1.0, ""))
    assert json.loads(path.read_text()) == {"other": 7.0, "one": 1.0}
    path.write_text("half a fi")
    FigureFile(path, keeps_others=True).add(Figure("one", 2.0, ""))
    assert json.loads(path.read_text()) == {"one": 2.0}
    FigureFile(path, keeps_others=False)
    assert json.loads(path.read_text()) == {}


def test_command_refuses_an_unknown_measurement_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["webhooks,nonsense"]) == 2
    told = capsys.readouterr().out
    assert "nonsense" in told
    assert all(name in told for name in command.MEASUREMENTS)
    assert {"api", "webhooks", "noisy_neighbour"} <= command.MEASUREMENTS.keys()

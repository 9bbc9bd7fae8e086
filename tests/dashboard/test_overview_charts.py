"""The layout of charts, the summary of delivery times, and the cache of figures."""

import pytest

from services.dashboard.overview.charts import WIDTH, bar_chart, squares, top_line
from services.dashboard.overview.health import summarize_times
from services.dashboard.overview.ttl_cache import TtlCache


@pytest.mark.parametrize(
    ("highest", "line"),
    [
        (0, 2),
        (1, 2),
        (2, 2),
        (3, 4),
        (5, 6),
        (7, 8),
        (9, 10),
        (10, 10),
        (11, 20),
        (41, 60),
        (99, 100),
        (64_000, 80_000),
    ],
)
def test_top_line_of_a_chart_is_a_round_even_number(highest: int, line: int) -> None:
    assert top_line(highest) == line


def test_bars_of_a_day_are_stacked_inside_the_chart() -> None:
    chart = bar_chart(("paid", "open", "expired"), [(6, 0, 2), (0, 0, 0), (1, 1, 100_000)], is_mirrored=False)
    first = [bar for bar in chart.bars if bar.x == chart.bars[0].x]
    assert [bar.kind for bar in first] == ["paid", "expired"]
    assert first[0].y == pytest.approx(first[1].y + first[1].height, abs=0.2)
    assert len(chart.bars) == 5
    assert all(bar.height >= 2 for bar in chart.bars)
    for bar in chart.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= WIDTH
        assert bar.y + bar.height <= chart.floor + 0.1


def test_mirrored_charts_run_from_right_to_left() -> None:
    columns = [(1,), (2,), (3,)]
    usual = bar_chart(("paid",), columns, is_mirrored=False)
    mirrored = bar_chart(("paid",), columns, is_mirrored=True)
    assert usual.middles == sorted(usual.middles)
    assert mirrored.middles == [pytest.approx(WIDTH - middle, abs=0.2) for middle in usual.middles]
    assert [bar.height for bar in usual.bars] == [bar.height for bar in mirrored.bars]


def test_squares_are_placed_in_rows() -> None:
    places = squares(30, is_mirrored=False).positions
    assert [x for x, _ in (places[0], places[25])] == [0, 0]
    assert places[25][1] > places[24][1] == 0
    assert len(set(places)) == 30
    mirrored = squares(30, is_mirrored=True)
    assert mirrored.positions[0][0] + mirrored.side == pytest.approx(WIDTH, abs=0.2)


def test_delivery_times_are_summarized() -> None:
    assert summarize_times([]) is None
    times = summarize_times([1_000, 1_001, 10_000, 60_001, 3_600_001] + [100] * 95)
    assert times is not None
    assert (times.count, times.median_ms, times.percentile_95_ms) == (100, 100, 100)
    assert times.bins == [96, 2, 0, 1, 0, 1]
    odd = summarize_times([3, 1, 2])
    assert odd is not None
    assert (odd.median_ms, odd.percentile_95_ms) == (2, 3)


class Stopwatch:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_values_are_cached_twenty_times_as_long_as_they_took() -> None:
    clock, asked = Stopwatch(), []
    kept: TtlCache[int] = TtlCache(clock)

    def find_out() -> int:
        clock.now += 0.5
        asked.append(clock.now)
        return len(asked)

    assert [kept.get("a", find_out) for _ in range(3)] == [1, 1, 1]
    assert kept.get("b", find_out) == 2
    clock.now = 0.5 + 9.9
    assert kept.get("a", find_out) == 1
    clock.now = 0.5 + 10.0
    assert kept.get("a", find_out) == 3


def test_a_failed_computation_is_not_cached() -> None:
    kept: TtlCache[int] = TtlCache()

    def fail() -> int:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        kept.get("a", fail)
    assert kept.get("a", lambda: 7) == 7

"""Rates between two snapshots, sparklines, and the recorded history."""

from dataclasses import replace
from datetime import timedelta

from services.monitor.inspection.history import HistoryRecorder, Point
from services.monitor.inspection.kafka import rates_between
from services.monitor.inspection.snapshots import TopicRate
from services.monitor.sparklines import HEIGHT, SPAN, WIDTH, build_sparkline
from tests.monitor.snapshot_builders import NOW, group, lag, view

LATER = NOW + timedelta(seconds=5)


def test_rates_are_computed_from_two_snapshots() -> None:
    earlier = view(group("webhooks.deliver", lag(committed=10, records=5)))
    now = view(group("webhooks.deliver", lag(committed=30, records=15)), at=LATER)
    rates = rates_between(earlier, now)
    assert rates["webhooks.deliver"] == TopicRate(into=(45 - 15) / 5, out=(30 - 10) / 5)
    assert rates["dead_letters"] == TopicRate(into=0.0, out=None)


def test_a_recreated_topic_has_no_negative_rates() -> None:
    earlier = view(group("webhooks.deliver", lag(committed=500, records=5), lag(1, committed=10)))
    now = view(group("webhooks.deliver", lag(committed=3, records=4), lag(1, committed=20)), at=LATER)
    assert rates_between(earlier, now)["webhooks.deliver"] == TopicRate(into=10 / 5, out=10 / 5)


def test_new_partitions_and_a_first_commit_do_not_count_as_consumed() -> None:
    earlier = view(group("webhooks.deliver", lag(committed=None)))
    now = view(group("webhooks.deliver", lag(committed=1000), lag(1, committed=1000)), at=LATER)
    assert rates_between(earlier, now)["webhooks.deliver"].out == 0


def test_first_snapshot_and_a_clock_that_went_back_give_no_rates() -> None:
    assert rates_between(None, view()) == {}
    assert rates_between(view(at=LATER), view(at=NOW)) == {}


def points(*values: float, step_s: float = 5.0) -> list[Point]:
    """Return points with these values, the last one at NOW."""
    last = len(values) - 1
    return [
        Point(NOW - timedelta(seconds=step_s * (last - place)), value) for place, value in enumerate(values)
    ]


def test_sparkline_ends_now_and_is_mirrored_for_right_to_left_languages() -> None:
    for is_mirrored, edge in ((False, WIDTH - 2), (True, 2)):
        drawn = build_sparkline(points(0, 10, 5), NOW, is_mirrored=is_mirrored)
        assert drawn is not None
        assert drawn.line.endswith(f"{edge:g},{HEIGHT / 2:g}")
        assert (drawn.highest, drawn.now) == (10, 5)


def test_gap_between_points_breaks_the_sparkline() -> None:
    together, apart = points(1, 2, 3, step_s=5), points(1, 2, 3, step_s=60)
    counts = [
        drawn.line.count("M")
        for one in (together, apart)
        if (drawn := build_sparkline(one, NOW, is_mirrored=False))
    ]
    assert counts == [1, 3]


def test_sparkline_needs_two_recent_points() -> None:
    assert build_sparkline([], NOW, is_mirrored=False) is None
    assert build_sparkline(points(1), NOW, is_mirrored=False) is None
    old = [replace(point, at=point.at - SPAN) for point in points(1, 2, 3)]
    assert build_sparkline(old, NOW, is_mirrored=False) is None
    flat = build_sparkline(points(0, 0), NOW, is_mirrored=False)
    assert flat is not None
    assert flat.highest == 0


def test_history_keeps_only_the_newest_points() -> None:
    recorder = HistoryRecorder(max_points=3)
    for number in range(10):
        recorder.record(NOW + timedelta(seconds=number), {"lag": number})
    assert [point.value for point in recorder.history().points("lag")] == [7, 8, 9]
    assert recorder.history().points("unknown") == ()

"""Isolation: places and lines of applications, with the time given by the test."""

from services.webhooks.pipeline.application_queues import (
    HANGING_RESPONSES,
    MAX_QUEUED_IN_SLOW,
    SLOTS_WHEN_HANGING,
    ApplicationQueues,
)

HANG_S = 10.0


def lane(places: int = 1000, each: int = 100, *, has_slow_lane: bool = True) -> ApplicationQueues[str]:
    return ApplicationQueues(places, each, has_slow_lane=has_slow_lane)


def join(endpoints: ApplicationQueues[str], application: str, count: int) -> None:
    for number in range(count):
        endpoints.join(application, f"{application}{number}")


def sent(endpoints: ApplicationQueues[str], now: float) -> dict[str, int]:
    """What is sent now, with the number of each request."""
    return {item: place for place, item in endpoints.next_to_send(now)}


def hang(endpoints: ApplicationQueues[str], application: str, times: int) -> None:
    for _ in range(times):
        endpoints.join(application, "x")
        (place,) = sent(endpoints, 0).values()
        endpoints.ended(application, place, HANG_S)


def test_an_application_has_no_more_in_flight_than_its_places() -> None:
    endpoints = lane(each=3)
    join(endpoints, "a", 5)
    assert list(sent(endpoints, 0)) == ["a0", "a1", "a2"]
    assert sent(endpoints, 0) == {}
    assert (endpoints.in_flight, endpoints.waiting) == (3, 2)


def test_an_answer_makes_room_for_the_next_in_line() -> None:
    endpoints = lane(each=1)
    join(endpoints, "a", 2)
    places = sent(endpoints, 0)
    endpoints.ended("a", places["a0"], 0.01)
    assert list(sent(endpoints, 0.01)) == ["a1"]


def test_a_request_ends_once() -> None:
    endpoints = lane(each=1)
    join(endpoints, "a", 3)
    place = sent(endpoints, 0)["a0"]
    endpoints.ended("a", place, 0.01)
    endpoints.ended("a", place, 0.01)
    assert endpoints.in_flight == 0
    assert list(sent(endpoints, 0)) == ["a1"]


def test_a_full_line_of_one_leaves_the_others_their_places() -> None:
    endpoints = lane(each=2)
    join(endpoints, "a", 1000)
    sent(endpoints, 0)
    join(endpoints, "b", 1)
    assert list(sent(endpoints, 0)) == ["b0"]


def test_applications_are_served_in_turn() -> None:
    endpoints = lane(each=2)
    join(endpoints, "a", 2)
    join(endpoints, "b", 2)
    assert list(sent(endpoints, 0)) == ["a0", "b0", "a1", "b1"]


def test_there_are_no_more_in_all_than_the_lane_has_places() -> None:
    endpoints = lane(places=4, each=3)
    join(endpoints, "a", 3)
    join(endpoints, "b", 3)
    assert len(sent(endpoints, 0)) == 4
    assert sent(endpoints, 0) == {}


def test_where_many_are_busy_each_has_its_share() -> None:
    endpoints = lane(places=10, each=10, has_slow_lane=False)
    join(endpoints, "a", 10)
    assert len(sent(endpoints, 0)) == 10
    for place in range(1, 6):
        endpoints.ended("a", place, 0.1)
    join(endpoints, "a", 10)
    join(endpoints, "b", 10)
    items = sent(endpoints, 0)
    assert sum(item.startswith("b") for item in items) >= 4


def test_a_quick_endpoint_keeps_a_long_line() -> None:
    """Thousands that will be served within a moment are not worth a detour."""
    endpoints = lane()
    join(endpoints, "a", 3000)
    now = 0.0
    for _ in range(5):
        places = sent(endpoints, now)
        now += 0.02
        for place in places.values():
            endpoints.ended("a", place, 0.02)
        assert endpoints.cut_lines(now) == []


def test_the_line_behind_silence_is_cut() -> None:
    """Nobody has answered yet: how long the oldest is out says how long a place takes."""
    endpoints = lane()
    join(endpoints, "a", 4000)
    sent(endpoints, 0)
    assert endpoints.cut_lines(0.09) == []
    assert len(endpoints.cut_lines(0.1)) == 3900 - 500
    assert len(endpoints.cut_lines(1.0)) == 500 - 100
    assert len(endpoints.cut_lines(5.0)) == 100 - 20
    assert endpoints.waiting == 20


def test_a_steady_but_slow_endpoint_keeps_what_it_can_take_within_a_second() -> None:
    endpoints = lane(each=10)
    join(endpoints, "a", 2000)
    for _ in range(500):
        (place, *_) = sent(endpoints, 0).values()
        endpoints.ended("a", place, 0.5)
        endpoints.join("a", "more")
    endpoints.cut_lines(0.5)
    assert 15 < endpoints.waiting <= 21


def test_a_moments_faltering_cuts_nothing() -> None:
    endpoints = lane()
    join(endpoints, "a", 4000)
    for duration_s in [0.01] * 400 + [0.8] * 100 + [0.01] * 10:
        endpoints.join("a", "more")
        (place, *_) = sent(endpoints, 0).values()
        endpoints.ended("a", place, duration_s)
        assert endpoints.cut_lines(0.8) == []


def test_a_few_quick_answers_among_slow_ones_do_not_make_it_quick() -> None:
    endpoints = lane()
    for number in range(600):
        endpoints.join("a", "x")
        (place, *_) = sent(endpoints, 0).values()
        endpoints.ended("a", place, 0.01 if number % 10 == 0 else 0.9)
        endpoints.join("a", "more")
    join(endpoints, "a", 3000)
    endpoints.cut_lines(0.9)
    assert endpoints.waiting <= 112


def test_what_is_cut_is_the_end_of_the_line() -> None:
    endpoints = lane(each=2)
    join(endpoints, "a", 5)
    sent(endpoints, 0)
    assert endpoints.cut_lines(1.0) == ["a4"]


def test_the_slow_lane_cuts_no_line_while_there_is_room() -> None:
    endpoints = lane(has_slow_lane=False)
    join(endpoints, "a", MAX_QUEUED_IN_SLOW - 1)
    sent(endpoints, 0)
    assert endpoints.cut_lines(9.0) == []


def test_in_the_slow_lane_long_lines_make_room_for_others() -> None:
    """Down to their share, and not again at once: those who are cut come around soon."""
    endpoints = lane(has_slow_lane=False)
    join(endpoints, "a", MAX_QUEUED_IN_SLOW)
    join(endpoints, "b", 10)
    cut = endpoints.cut_lines(0)
    assert len(cut) == MAX_QUEUED_IN_SLOW - MAX_QUEUED_IN_SLOW // 4
    assert {item[0] for item in cut} == {"a"}
    join(endpoints, "a", MAX_QUEUED_IN_SLOW)
    assert endpoints.cut_lines(1.0) == []
    assert endpoints.cut_lines(6.0) != []


def test_an_endpoint_that_keeps_hanging_is_only_probed() -> None:
    endpoints = lane()
    hang(endpoints, "a", HANGING_RESPONSES)
    join(endpoints, "a", 50)
    assert len(sent(endpoints, 0)) == SLOTS_WHEN_HANGING
    assert len(endpoints.cut_lines(0)) == 50 - SLOTS_WHEN_HANGING


def test_without_a_slow_lane_one_that_hangs_keeps_its_places() -> None:
    endpoints = lane(has_slow_lane=False)
    hang(endpoints, "a", HANGING_RESPONSES)
    join(endpoints, "a", 50)
    assert len(sent(endpoints, 0)) == 50


def test_one_good_answer_ends_the_probing() -> None:
    endpoints = lane()
    hang(endpoints, "a", HANGING_RESPONSES)
    join(endpoints, "a", 1)
    (place,) = sent(endpoints, 0).values()
    endpoints.ended("a", place, 0.05)
    join(endpoints, "a", 20)
    assert len(sent(endpoints, 1)) == 20


def test_an_end_that_is_not_the_endpoints_doing_says_nothing_about_it() -> None:
    endpoints = lane()
    for _ in range(HANGING_RESPONSES):
        endpoints.join("a", "x")
        (place,) = sent(endpoints, 0).values()
        endpoints.ended("a", place, None)
    join(endpoints, "a", 50)
    assert len(sent(endpoints, 0)) == 50


def test_those_who_leave_the_line_are_not_sent() -> None:
    endpoints = lane(each=1)
    join(endpoints, "a", 3)
    join(endpoints, "b", 1)
    assert endpoints.leave(lambda item: item in {"a0", "b0"}) == ["a0", "b0"]
    assert endpoints.waiting == 2
    assert list(sent(endpoints, 0)) == ["a1"]


def test_an_endpoint_that_is_well_takes_no_memory() -> None:
    endpoints = lane()
    join(endpoints, "a", 1)
    (place,) = sent(endpoints, 0).values()
    endpoints.ended("a", place, 0.01)
    assert endpoints._endpoints == {}

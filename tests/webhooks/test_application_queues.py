"""Isolation of applications by slots and queues, with a clock of the test."""

from services.webhooks.pipeline.application_queues import (
    HANGING_RESPONSES,
    MAX_QUEUED_IN_SLOW,
    SLOTS_WHEN_HANGING,
    ApplicationQueues,
)

HANG_S = 10.0


def make_queues(
    slots: int = 1000, per_application: int = 100, *, has_slow_pipeline: bool = True
) -> ApplicationQueues[str]:
    return ApplicationQueues(slots, per_application, has_slow_pipeline=has_slow_pipeline)


def add(queues: ApplicationQueues[str], application: str, count: int) -> None:
    for number in range(count):
        queues.add(application, f"{application}{number}")


def send(queues: ApplicationQueues[str], now: float) -> dict[str, int]:
    """Start what can be sent now, and return the slot of each item."""
    return {item: slot for slot, item in queues.next_to_send(now)}


def hang(queues: ApplicationQueues[str], application: str, times: int) -> None:
    for _ in range(times):
        queues.add(application, "x")
        (slot,) = send(queues, 0).values()
        queues.release(application, slot, HANG_S)


def test_application_has_no_more_requests_in_flight_than_slots() -> None:
    queues = make_queues(per_application=3)
    add(queues, "a", 5)
    assert list(send(queues, 0)) == ["a0", "a1", "a2"]
    assert send(queues, 0) == {}
    assert (queues.in_flight, queues.waiting) == (3, 2)


def test_a_response_frees_the_slot_for_the_next_in_the_queue() -> None:
    queues = make_queues(per_application=1)
    add(queues, "a", 2)
    slots = send(queues, 0)
    queues.release("a", slots["a0"], 0.01)
    assert list(send(queues, 0.01)) == ["a1"]


def test_a_slot_is_released_once() -> None:
    queues = make_queues(per_application=1)
    add(queues, "a", 3)
    slot = send(queues, 0)["a0"]
    queues.release("a", slot, 0.01)
    queues.release("a", slot, 0.01)
    assert queues.in_flight == 0
    assert list(send(queues, 0)) == ["a1"]


def test_long_queue_of_one_application_leaves_slots_for_others() -> None:
    queues = make_queues(per_application=2)
    add(queues, "a", 1000)
    send(queues, 0)
    add(queues, "b", 1)
    assert list(send(queues, 0)) == ["b0"]


def test_applications_are_served_in_turn() -> None:
    queues = make_queues(per_application=2)
    add(queues, "a", 2)
    add(queues, "b", 2)
    assert list(send(queues, 0)) == ["a0", "b0", "a1", "b1"]


def test_pipeline_has_no_more_requests_in_flight_than_slots() -> None:
    queues = make_queues(slots=4, per_application=3)
    add(queues, "a", 3)
    add(queues, "b", 3)
    assert len(send(queues, 0)) == 4
    assert send(queues, 0) == {}


def test_busy_applications_share_the_slots() -> None:
    queues = make_queues(slots=10, per_application=10, has_slow_pipeline=False)
    add(queues, "a", 10)
    assert len(send(queues, 0)) == 10
    for slot in range(1, 6):
        queues.release("a", slot, 0.1)
    add(queues, "a", 10)
    add(queues, "b", 10)
    items = send(queues, 0)
    assert sum(item.startswith("b") for item in items) >= 4


def test_a_fast_endpoint_keeps_a_long_queue() -> None:
    """Thousands that are sent within a moment need no detour through the slow pipeline."""
    queues = make_queues()
    add(queues, "a", 3000)
    now = 0.0
    for _ in range(5):
        slots = send(queues, now)
        now += 0.02
        for slot in slots.values():
            queues.release("a", slot, 0.02)
        assert queues.trim(now) == []


def test_intake_keeps_of_a_fast_endpoint_what_it_answers_within_a_second() -> None:
    """So that events of others, which share its partitions, are not held up behind a burst."""
    queues = make_queues(per_application=10)
    add(queues, "a", 2000)
    assert queues.trim_fast(0) == [], "its response time is not known yet"
    for _ in range(50):
        (slot, *_) = send(queues, 0).values()
        queues.release("a", slot, 0.08)
    assert queues.trim(0) == []
    surplus = queues.trim_fast(0)
    assert (queues.waiting, surplus[-1]) == (125, "a1999")
    assert queues.trim_fast(0) == []


def test_queue_of_an_endpoint_without_responses_is_trimmed() -> None:
    """The age of its oldest request counts as its response time."""
    queues = make_queues()
    add(queues, "a", 4000)
    send(queues, 0)
    assert queues.trim(0.09) == []
    assert len(queues.trim(0.1)) == 3900 - 500
    assert len(queues.trim(1.0)) == 500 - 100
    assert len(queues.trim(5.0)) == 100 - 20
    assert queues.waiting == 20


def test_steady_but_slow_endpoint_keeps_what_it_can_process_within_a_second() -> None:
    queues = make_queues(per_application=10)
    add(queues, "a", 2000)
    for _ in range(500):
        (slot, *_) = send(queues, 0).values()
        queues.release("a", slot, 0.5)
        queues.add("a", "more")
    queues.trim(0.5)
    assert 15 < queues.waiting <= 21


def test_a_short_stall_trims_nothing() -> None:
    queues = make_queues()
    add(queues, "a", 4000)
    for duration_s in [0.01] * 400 + [0.8] * 100 + [0.01] * 10:
        queues.add("a", "more")
        (slot, *_) = send(queues, 0).values()
        queues.release("a", slot, duration_s)
        assert queues.trim(0.8) == []


def test_a_few_fast_responses_among_slow_ones_do_not_make_an_endpoint_fast() -> None:
    queues = make_queues()
    for number in range(600):
        queues.add("a", "x")
        (slot, *_) = send(queues, 0).values()
        queues.release("a", slot, 0.01 if number % 10 == 0 else 0.9)
        queues.add("a", "more")
    add(queues, "a", 3000)
    queues.trim(0.9)
    assert queues.waiting <= 112


def test_trimming_removes_the_end_of_the_queue() -> None:
    queues = make_queues(per_application=2)
    add(queues, "a", 5)
    send(queues, 0)
    assert queues.trim(1.0) == ["a4"]


def test_the_slow_pipeline_trims_nothing_below_its_limit() -> None:
    queues = make_queues(has_slow_pipeline=False)
    add(queues, "a", MAX_QUEUED_IN_SLOW - 1)
    send(queues, 0)
    assert queues.trim(9.0) == []


def test_the_slow_pipeline_trims_long_queues_to_their_share() -> None:
    """Not again at once, because trimmed records are read again soon."""
    queues = make_queues(has_slow_pipeline=False)
    add(queues, "a", MAX_QUEUED_IN_SLOW)
    add(queues, "b", 10)
    surplus = queues.trim(0)
    assert len(surplus) == MAX_QUEUED_IN_SLOW - MAX_QUEUED_IN_SLOW // 4
    assert {item[0] for item in surplus} == {"a"}
    add(queues, "a", MAX_QUEUED_IN_SLOW)
    assert queues.trim(1.0) == []
    assert queues.trim(6.0) != []


def test_an_endpoint_that_keeps_hanging_gets_few_slots() -> None:
    queues = make_queues()
    hang(queues, "a", HANGING_RESPONSES)
    add(queues, "a", 50)
    assert len(send(queues, 0)) == SLOTS_WHEN_HANGING
    assert len(queues.trim(0)) == 50 - SLOTS_WHEN_HANGING


def test_hanging_endpoint_keeps_its_slots_in_the_slow_pipeline() -> None:
    queues = make_queues(has_slow_pipeline=False)
    hang(queues, "a", HANGING_RESPONSES)
    add(queues, "a", 50)
    assert len(send(queues, 0)) == 50


def test_one_response_in_time_restores_the_slots() -> None:
    queues = make_queues()
    hang(queues, "a", HANGING_RESPONSES)
    add(queues, "a", 1)
    (slot,) = send(queues, 0).values()
    queues.release("a", slot, 0.05)
    add(queues, "a", 20)
    assert len(send(queues, 1)) == 20


def test_request_without_a_duration_does_not_affect_the_endpoint() -> None:
    queues = make_queues()
    for _ in range(HANGING_RESPONSES):
        queues.add("a", "x")
        (slot,) = send(queues, 0).values()
        queues.release("a", slot, None)
    add(queues, "a", 50)
    assert len(send(queues, 0)) == 50


def test_removed_items_are_not_sent() -> None:
    queues = make_queues(per_application=1)
    add(queues, "a", 3)
    add(queues, "b", 1)
    assert queues.remove(lambda item: item in {"a0", "b0"}) == ["a0", "b0"]
    assert queues.waiting == 2
    assert list(send(queues, 0)) == ["a1"]


def test_idle_healthy_application_uses_no_memory() -> None:
    queues = make_queues()
    add(queues, "a", 1)
    (slot,) = send(queues, 0).values()
    queues.release("a", slot, 0.01)
    assert queues._applications == {}

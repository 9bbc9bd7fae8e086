"""The rate limit of an application: a bucket of `burst` requests that fills up at `rate` a second."""

from uuid import UUID, uuid4

import pytest

from services.api.rate_limit import RateLimit, TooManyRequestsError

APPLICATION = UUID(int=1)


class HandClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hand() -> HandClock:
    return HandClock()


def _taken(limit: RateLimit, wanted: int, application_id: UUID = APPLICATION) -> int:
    """How many of `wanted` requests at one moment are let through."""
    taken = 0
    for _ in range(wanted):
        try:
            limit.acquire(application_id)
        except TooManyRequestsError:
            continue
        taken += 1
    return taken


def test_a_burst_is_let_through_and_no_more(hand: HandClock) -> None:
    """So many may come at one moment."""
    assert _taken(RateLimit(2, 5, hand), wanted=20) == 5


def test_it_fills_up_with_time(hand: HandClock) -> None:
    """At the rate, not all at once, and never above the burst."""
    limit = RateLimit(2, 5, hand)
    rows = [
        (0.0, 5),  # full at first
        (0.0, 0),  # empty
        (0.25, 0),  # half a request is none
        (0.25, 1),  # the other half: being refused costs nothing
        (1.0, 2),
        (100.0, 5),  # full is full
        (0.5, 1),
    ]
    for seconds, expected in rows:
        hand.now += seconds
        assert _taken(limit, wanted=20) == expected


def test_a_steady_caller_within_the_rate_is_never_refused(hand: HandClock) -> None:
    """Two a second, for minutes, with a burst of one."""
    limit = RateLimit(2, 1, hand)
    for _ in range(500):
        limit.acquire(APPLICATION)
        hand.now += 0.5


def test_each_application_has_its_own(hand: HandClock) -> None:
    """A merchant that calls too fast slows nobody else."""
    limit = RateLimit(2, 5, hand)
    assert _taken(limit, wanted=20) == 5
    assert _taken(limit, 20, uuid4()) == 5


def test_a_rate_of_0_is_no_limit(hand: HandClock) -> None:
    """Off unless configured."""
    assert _taken(RateLimit(0.0, 1, hand), wanted=1000) == 1000


@pytest.mark.parametrize(
    ("rate", "burst", "since_last", "expected"),
    [
        (1.0, 1, 0.0, 1),
        (100.0, 10, 0.0, 1),  # whole seconds, as the header wants them, and never 0
        (0.5, 1, 0.0, 2),
        (0.5, 1, 0.5, 2),  # a second and a half, rounded up
        (0.25, 3, 0.0, 4),
        (0.25, 3, 3.5, 1),
    ],
)
def test_whoever_waits_as_told_is_let_through(
    hand: HandClock, rate: float, burst: int, since_last: float, expected: int
) -> None:
    """`retry_after` is enough, and not a second more than that."""
    limit = RateLimit(rate, burst, hand)
    assert _taken(limit, burst) == burst
    hand.now += since_last
    with pytest.raises(TooManyRequestsError) as refused:
        limit.acquire(APPLICATION)
    assert refused.value.retry_after == expected
    hand.now += expected
    limit.acquire(APPLICATION)

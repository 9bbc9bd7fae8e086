"""The rate limit of an application is a token bucket of `burst` requests, refilled at `rate` per second."""

from uuid import UUID, uuid4

import pytest

from services.api import rate_limit
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


def _taken(limit: RateLimit[UUID], wanted: int, application_id: UUID = APPLICATION) -> int:
    """Return how many of `wanted` requests at one moment are accepted."""
    taken = 0
    for _ in range(wanted):
        try:
            limit.acquire(application_id)
        except TooManyRequestsError:
            continue
        taken += 1
    return taken


def test_burst_is_accepted_and_nothing_beyond_it(hand: HandClock) -> None:
    assert _taken(RateLimit(2, 5, hand), wanted=20) == 5


def test_bucket_refills_at_the_rate_up_to_the_burst(hand: HandClock) -> None:
    limit: RateLimit[UUID] = RateLimit(2, 5, hand)
    rows = [
        (0.0, 5),  # full at first
        (0.0, 0),  # empty
        (0.25, 0),  # half a token is not enough
        (0.25, 1),  # the other half: a refused request costs no token
        (1.0, 2),
        (100.0, 5),  # never more than the burst
        (0.5, 1),
    ]
    for seconds, expected in rows:
        hand.now += seconds
        assert _taken(limit, wanted=20) == expected


def test_a_steady_caller_within_the_rate_is_never_refused(hand: HandClock) -> None:
    """500 requests at two per second, with a burst of one."""
    limit: RateLimit[UUID] = RateLimit(2, 1, hand)
    for _ in range(500):
        limit.acquire(APPLICATION)
        hand.now += 0.5


def test_each_application_has_its_own_bucket(hand: HandClock) -> None:
    limit: RateLimit[UUID] = RateLimit(2, 5, hand)
    assert _taken(limit, wanted=20) == 5
    assert _taken(limit, 20, uuid4()) == 5


def test_rate_of_0_means_no_limit(hand: HandClock) -> None:
    assert _taken(RateLimit(0.0, 1, hand), wanted=1000) == 1000


@pytest.mark.parametrize(
    ("rate", "burst", "since_last", "expected"),
    [
        (1.0, 1, 0.0, 1),
        (100.0, 10, 0.0, 1),  # whole seconds, as Retry-After requires, and never 0
        (0.5, 1, 0.0, 2),
        (0.5, 1, 0.5, 2),  # 1.5 s, rounded up
        (0.25, 3, 0.0, 4),
        (0.25, 3, 3.5, 1),
    ],
)
def test_request_is_accepted_after_waiting_retry_after_seconds(
    hand: HandClock, rate: float, burst: int, since_last: float, expected: int
) -> None:
    """And `retry_after` is not longer than necessary."""
    limit: RateLimit[UUID] = RateLimit(rate, burst, hand)
    assert _taken(limit, burst) == burst
    hand.now += since_last
    with pytest.raises(TooManyRequestsError) as refused:
        limit.acquire(APPLICATION)
    assert refused.value.retry_after == expected
    hand.now += expected
    limit.acquire(APPLICATION)


def test_memory_is_bounded_however_many_call(hand: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has not called for a while is forgotten first."""
    monkeypatch.setattr(rate_limit, "_MAX_BUCKETS", 10)
    limit: RateLimit[UUID] = RateLimit(1, 5, hand)
    for _ in range(9):
        limit.acquire(uuid4())
    hand.now += 10
    assert _taken(limit, wanted=20) == 5
    limit.acquire(uuid4())
    assert _taken(limit, wanted=1) == 0
    for _ in range(100):
        limit.acquire(uuid4())
    assert len(limit._buckets) <= 10

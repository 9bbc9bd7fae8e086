"""When an endpoint counts as failing."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from services.dashboard.overview.health import TriedDelivery, find_failing, share_delivered

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
URL = "https://shop.example.ly/hooks"


def newest(outcomes: str) -> list[TriedDelivery]:
    """Newest first, one a minute: `+` delivered, `.` pending, `-` failed, `o` failed at an older URL."""
    kinds = {"+": "succeeded", ".": "pending", "-": "failed", "o": "failed"}
    return [
        TriedDelivery(
            id=uuid4(),
            at=NOW - timedelta(minutes=n),
            event="payment_intent.succeeded",
            status=kinds[outcome],
            url="https://old.example.ly" if outcome == "o" else URL,
            status_code=200 if outcome == "+" else 500 + n,
            failure=None,
            is_test=False,
            tried_at=NOW - timedelta(minutes=n),
        )
        for n, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("outcomes", "count", "is_all"),
    [
        ("", None, None),
        ("-", None, None),
        # Two can be a hiccup.
        ("--", None, None),
        ("--+", None, None),
        # Three in a row, whether they are tried again or not.
        ("---", 3, True),
        ("...", 3, True),
        (".-.+", 3, False),
        ("-----+--", 5, False),
        # It works again, whatever was before.
        ("+-----", None, None),
        ("-+----", None, None),
        # What was sent elsewhere says nothing of the URL of today.
        ("ooooo", None, None),
        ("--ooo", None, None),
        ("-o-o-", 3, True),
        ("-o-o-+", 3, False),
    ],
)
def test_three_failures_in_a_row_make_a_failing_endpoint(
    outcomes: str, count: int | None, is_all: bool | None
) -> None:
    found = find_failing(newest(outcomes), URL)
    assert (found and found.count) == count
    assert (found and found.is_all) == is_all


def test_it_has_been_failing_since_the_first_failure_in_a_row() -> None:
    found = find_failing(newest("----++"), URL)
    assert found is not None
    assert found.since == NOW - timedelta(minutes=3)


def test_the_last_response_is_that_of_the_last_try() -> None:
    """Which may be a retry of an older delivery."""
    deliveries = newest("---")
    retried = TriedDelivery(
        **{name: getattr(deliveries[2], name) for name in TriedDelivery.__slots__}
        | {"tried_at": NOW + timedelta(minutes=1), "status_code": 418}
    )
    found = find_failing([*deliveries[:2], retried], URL)
    assert found is not None
    assert found.last.status_code == 418


def test_the_share_of_delivered() -> None:
    assert share_delivered([]) is None
    assert share_delivered(newest("+++-")) == 0.75
    assert share_delivered(newest("..")) == 0

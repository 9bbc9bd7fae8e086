"""When an endpoint counts as failing."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from services.dashboard.overview.health import TriedDelivery, find_failing, share_delivered

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
URL = "https://shop.example.ly/hooks"


def newest(outcomes: str) -> list[TriedDelivery]:
    """Return deliveries, newest first, one a minute: `+` delivered, `.` pending, `-` failed, `o` at an old URL,
    `p` at our proxy."""
    kinds = {"+": "succeeded", ".": "pending", "-": "failed", "o": "failed", "p": "pending"}
    return [
        TriedDelivery(
            id=uuid4(),
            at=NOW - timedelta(minutes=n),
            event="payment_intent.succeeded",
            status=kinds[outcome],
            url="https://old.example.ly" if outcome == "o" else URL,
            status_code=None if outcome == "p" else 200 if outcome == "+" else 500 + n,
            failure="proxy_refused" if outcome == "p" else None,
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
        # Two failures are not enough.
        ("--", None, None),
        ("--+", None, None),
        # Three in a row, whether they will be retried or not.
        ("---", 3, True),
        ("...", 3, True),
        (".-.+", 3, False),
        ("-----+--", 5, False),
        # The newest ones succeeded.
        ("+-----", None, None),
        ("-+----", None, None),
        # Failures of an older URL do not count.
        ("ooooo", None, None),
        ("--ooo", None, None),
        ("-o-o-", 3, True),
        ("-o-o-+", 3, False),
        # Failures of our own proxy say nothing about the endpoint.
        ("ppppp", None, None),
        ("--ppp", None, None),
        ("p-p-p-+", 3, False),
        ("pp+--", None, None),
    ],
)
def test_three_failures_in_a_row_make_a_failing_endpoint(
    outcomes: str, count: int | None, is_all: bool | None
) -> None:
    found = find_failing(newest(outcomes), URL)
    assert (found and found.count) == count
    assert (found and found.is_all) == is_all


def test_endpoint_is_failing_since_its_first_failure_in_a_row() -> None:
    found = find_failing(newest("----++"), URL)
    assert found is not None
    assert found.since == NOW - timedelta(minutes=3)


def test_the_last_response_is_that_of_the_last_try() -> None:
    """Also if that was a retry of an older delivery."""
    deliveries = newest("---")
    retried = TriedDelivery(
        **{name: getattr(deliveries[2], name) for name in TriedDelivery.__slots__}
        | {"tried_at": NOW + timedelta(minutes=1), "status_code": 418}
    )
    found = find_failing([*deliveries[:2], retried], URL)
    assert found is not None
    assert found.last.status_code == 418


def test_share_of_delivered_webhooks() -> None:
    assert share_delivered([]) is None
    assert share_delivered(newest("+++-")) == 0.75
    assert share_delivered(newest("..")) == 0

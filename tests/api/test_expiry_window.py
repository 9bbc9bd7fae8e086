"""`expires_at` (§4.1, §8): more than 5 minutes and less than 31 days ahead, by the database's clock."""

from datetime import UTC, datetime, timedelta

import pytest
from psycopg import sql

from shared.platform.database.pool import Database
from tests.api.conftest import Merchant, data_of, errors_of, written
from tests.clock import Clock

NOON = datetime(2031, 3, 10, 12, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
SOONEST, LATEST = timedelta(minutes=5), timedelta(days=31)


@pytest.fixture
def stopped_at_noon(database: Database) -> None:
    """Stop the database's clock at NOON, so that limits can be tested to the microsecond."""
    stop = """create or replace function mizan_now() returns timestamptz
              language sql stable parallel safe return {}::timestamptz"""
    with database.transaction() as connection:
        connection.execute(sql.SQL(stop).format(sql.Literal(NOON.isoformat())))


@pytest.mark.usefixtures("stopped_at_noon")
def test_both_limits_of_the_expiry_window_are_exclusive(
    merchant: Merchant, database: Database, subtests: pytest.Subtests
) -> None:
    """§4.1: exactly 5 minutes and exactly 31 days are refused, and nothing is created."""
    rows = [
        (timedelta(days=-30), False),  # long past
        (timedelta(), False),
        (SOONEST - INSTANT, False),
        (SOONEST, False),
        (SOONEST + INSTANT, True),
        (timedelta(hours=24), True),
        (LATEST - INSTANT, True),
        (LATEST, False),
        (LATEST + INSTANT, False),
        (timedelta(days=3650), False),
    ]
    for ahead, accepted in rows:
        with subtests.test(ahead=str(ahead)):
            before = written(database)
            expires_at = (NOON + ahead).isoformat()
            answer = merchant.create(merchant_reference=f"in {ahead}", expires_at=expires_at)
            if accepted:
                made = data_of(answer, 201)["expires_at"]
                assert datetime.fromisoformat(made) == NOON + ahead
            else:
                assert set(errors_of(answer)) == {"expires_at"}
                assert written(database) == before


def test_expiry_window_moves_with_the_clock(merchant: Merchant, clock: Clock) -> None:
    """§4.1: the same time is first too far ahead, then valid, then too soon."""
    at = (clock.now() + timedelta(days=40)).isoformat()
    assert set(errors_of(merchant.create(expires_at=at))) == {"expires_at"}
    clock.advance(timedelta(days=20))
    data_of(merchant.create(expires_at=at), 201)
    clock.advance(timedelta(days=20))
    assert set(errors_of(merchant.create(merchant_reference="order-2", expires_at=at))) == {"expires_at"}


@pytest.mark.usefixtures("stopped_at_noon")
def test_all_iso_8601_notations_of_a_time_are_accepted(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.1: the moment counts, in any offset."""
    rows = [
        ("2031-03-11T12:00:00Z", "2031-03-11T12:00:00Z"),
        ("2031-03-11t12:00:00z", "2031-03-11T12:00:00Z"),  # lower case
        ("2031-03-11 12:00:00Z", "2031-03-11T12:00:00Z"),  # a space, which RFC 3339 allows
        ("2031-03-11T12:00Z", "2031-03-11T12:00:00Z"),  # no seconds
        ("2031-03-11T14:00:00+02:00", "2031-03-11T12:00:00Z"),  # Tripoli
        ("2031-03-11T07:00:00-0500", "2031-03-11T12:00:00Z"),  # no colon
        ("2031-03-11T14:00:00+02", "2031-03-11T12:00:00Z"),  # hours only
        ("2031-03-12T11:59:00+23:59", "2031-03-11T12:00:00Z"),  # an offset that PostgreSQL does not accept
        ("2031-03-10T12:01:00-23:59", "2031-03-11T12:00:00Z"),
        ("2031-03-11T12:00:00-00:00", "2031-03-11T12:00:00Z"),
        ("2031-03-11T12:00:00.5Z", "2031-03-11T12:00:00.500000Z"),
        ("2031-03-11T12:00:00,5Z", "2031-03-11T12:00:00.500000Z"),  # ISO 8601 allows a comma
        ("2031-03-11T12:00:00.25Z", "2031-03-11T12:00:00.250000Z"),
        ("2031-03-11T12:00:00.125Z", "2031-03-11T12:00:00.125000Z"),
        ("2031-03-11T12:00:00.1234Z", "2031-03-11T12:00:00.123400Z"),
        ("2031-03-11T12:00:00.12345Z", "2031-03-11T12:00:00.123450Z"),
        ("2031-03-11T12:00:00.123456Z", "2031-03-11T12:00:00.123456Z"),
        ("2031-03-11T12:00:00.1234561Z", "2031-03-11T12:00:00.123456Z"),  # truncated to microseconds
        ("2031-03-11T12:00:00.12345612Z", "2031-03-11T12:00:00.123456Z"),
        ("2031-03-11T12:00:00.123456123Z", "2031-03-11T12:00:00.123456Z"),
    ]
    for sent, kept in rows:
        with subtests.test(sent=sent):
            data = data_of(merchant.create(merchant_reference=sent, expires_at=sent), 201)
            assert datetime.fromisoformat(data["expires_at"]) == datetime.fromisoformat(kept)
            assert data["expires_at"].endswith("Z")


@pytest.mark.usefixtures("stopped_at_noon")
def test_offset_is_applied_before_the_window_is_checked(merchant: Merchant) -> None:
    """§4.1: 12:05:01 in Tripoli is before noon UTC."""
    late = merchant.create(expires_at="2031-03-10T12:05:01+02:00")
    assert set(errors_of(late)) == {"expires_at"}
    data_of(merchant.create(expires_at="2031-03-10T14:05:01+02:00"), 201)


@pytest.mark.usefixtures("stopped_at_noon")
def test_invalid_times_are_422(merchant: Merchant, database: Database, subtests: pytest.Subtests) -> None:
    """DESIGN §3: `expires_at` needs an offset or Z. Nothing causes a 500."""
    rows: list[object] = [
        "2031-03-11T12:00:00",  # no offset
        "2031-03-11",  # no time
        "12:00:00Z",  # no date
        "",
        " 2031-03-11T12:00:00Z",
        "2031-03-11T12:00:00Z ",
        "2031-03-11T12:00:00Z\n",
        "2031-03-11T12:00:00Z\x00",
        "2031-03-11T12:00:00\ud800",  # sent as a lone surrogate
        "2031-03-11T12:00:00 Z",
        "2031-03-11T12:00:00.Z",  # a point without a fraction
        "2031-03-11T12:00:00+2:00",
        "2031-03-11T12:00:00+24:00",  # offsets are less than 24 hours
        "2031-03-11T12:00:00[Africa/Tripoli]",
        "2031-03-11T12:00:60Z",  # no such second
        "2031-03-31T23:59:60Z",  # not a leap second
        "2031-03-11T24:00:01Z",
        "2031-03-11T12:60:00Z",
        "2031-02-29T12:00:00Z",  # not a leap year
        "2031-04-31T12:00:00Z",
        "2031-13-01T12:00:00Z",
        "2031-00-10T12:00:00Z",
        "2031-03-00T12:00:00Z",
        "0000-01-01T00:00:00Z",
        "12031-03-11T12:00:00Z",  # a year with five digits
        "-2031-03-11T12:00:00Z",
        "20310311T120000Z",  # ISO 8601 basic format
        "2031-W11-2T12:00:00Z",  # ISO 8601 week date
        "2031-070T12:00:00Z",  # ISO 8601 ordinal date
        "٢٠٣١-٠٣-١١T١٢:٠٠:٠٠Z",
        "Tue, 11 Mar 2031 12:00:00 GMT",
        "tomorrow",
        "now",
        "infinity",  # valid in PostgreSQL
        "1931083200",
        1931083200,
        1931083200.5,
        True,
        ["2031-03-11T12:00:00Z"],
        {"date": "2031-03-11T12:00:00Z"},
    ]
    for sent in rows:
        with subtests.test(sent=sent):
            assert set(errors_of(merchant.create(expires_at=sent))) == {"expires_at"}
    assert written(database) == (0, 0, 0)


@pytest.mark.usefixtures("stopped_at_noon")
@pytest.mark.parametrize("offset", ["+02:60", "-0099"])
def test_offset_with_60_or_more_minutes_is_refused(merchant: Merchant, offset: str) -> None:
    """§4.1: not ISO 8601. Python would read it as the next hour, which is another moment."""
    assert set(errors_of(merchant.create(expires_at=f"2031-03-11T12:00:00{offset}"))) == {"expires_at"}


def test_first_and_last_years_of_the_calendar_are_422(
    merchant: Merchant, database: Database, subtests: pytest.Subtests
) -> None:
    """§4.1: they are outside of the window, also if the offset leads beyond the year 1 or 9999."""
    rows = [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+02:00",  # in the year 0
        "0001-01-01T00:00:00-02:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-02:00",  # in the year 10000
        "9999-12-31T23:59:59.999999999+23:59",
    ]
    for sent in rows:
        with subtests.test(sent=sent):
            assert set(errors_of(merchant.create(expires_at=sent))) == {"expires_at"}
    assert written(database) == (0, 0, 0)


def test_expiry_outside_the_window_is_reported_together_with_other_errors(
    merchant: Merchant, subtests: pytest.Subtests
) -> None:
    """DESIGN §3: all failing fields are reported at once."""
    past = "2020-01-01T00:00:00Z"
    rows: list[tuple[dict[str, object], set[str]]] = [
        ({"amount": 1}, {"amount", "expires_at"}),
        ({"merchant_reference": None}, {"merchant_reference", "expires_at"}),
        ({"merchant_reference": 5}, {"merchant_reference", "expires_at"}),
        ({"merchant_reference": "\x00"}, {"merchant_reference", "expires_at"}),
        ({"metadata": {"a": 1}, "currency": "USD"}, {"metadata.a", "currency", "expires_at"}),
    ]
    for fields, failing in rows:
        with subtests.test(fields=fields):
            assert set(errors_of(merchant.create(expires_at=past, **fields))) == failing


def test_expiry_window_is_not_checked_for_an_invalid_repeat(
    merchant: Merchant, other_merchant: Merchant
) -> None:
    """§4.1 rule 5: only the other fields fail. The create of another application is not a repeat."""
    data_of(merchant.create(merchant_reference="order-1"), 201)
    wrong = {"merchant_reference": "order-1", "amount": 1, "expires_at": "2020-01-01T00:00:00Z"}
    assert set(errors_of(merchant.create(**wrong))) == {"amount"}
    assert set(errors_of(other_merchant.create(**wrong))) == {"amount", "expires_at"}

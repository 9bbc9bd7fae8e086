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
    """A clock that runs cannot be met to the microsecond."""
    stop = """create or replace function mizan_now() returns timestamptz
              language sql stable parallel safe return {}::timestamptz"""
    with database.transaction() as connection:
        connection.execute(sql.SQL(stop).format(sql.Literal(NOON.isoformat())))


@pytest.mark.usefixtures("stopped_at_noon")
def test_both_edges_to_the_microsecond(
    merchant: Merchant, database: Database, subtests: pytest.Subtests
) -> None:
    """§4.1: more than 5 minutes, less than 31 days; exactly either is refused, and nothing is made."""
    rows = [
        (timedelta(days=-30), False),  # long over
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


def test_the_window_moves_with_the_clock(merchant: Merchant, clock: Clock) -> None:
    """§4.1: a time that was too far ahead is all right later, and too soon in the end."""
    at = (clock.now() + timedelta(days=40)).isoformat()
    assert set(errors_of(merchant.create(expires_at=at))) == {"expires_at"}
    clock.advance(timedelta(days=20))
    data_of(merchant.create(expires_at=at), 201)
    clock.advance(timedelta(days=20))
    assert set(errors_of(merchant.create(merchant_reference="order-2", expires_at=at))) == {"expires_at"}


@pytest.mark.usefixtures("stopped_at_noon")
def test_ways_to_write_a_time(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§4.1: ISO 8601. It is the moment that counts, whatever the offset it is told in."""
    rows = [
        ("2031-03-11T12:00:00Z", "2031-03-11T12:00:00Z"),
        ("2031-03-11t12:00:00z", "2031-03-11T12:00:00Z"),  # lower case
        ("2031-03-11 12:00:00Z", "2031-03-11T12:00:00Z"),  # a space, as RFC 3339 lets people do
        ("2031-03-11T12:00Z", "2031-03-11T12:00:00Z"),  # no seconds
        ("2031-03-11T14:00:00+02:00", "2031-03-11T12:00:00Z"),  # Tripoli
        ("2031-03-11T07:00:00-0500", "2031-03-11T12:00:00Z"),  # no colon
        ("2031-03-11T14:00:00+02", "2031-03-11T12:00:00Z"),  # hours only
        ("2031-03-12T11:59:00+23:59", "2031-03-11T12:00:00Z"),  # further east than PostgreSQL knows
        ("2031-03-10T12:01:00-23:59", "2031-03-11T12:00:00Z"),
        ("2031-03-11T12:00:00-00:00", "2031-03-11T12:00:00Z"),
        ("2031-03-11T12:00:00.5Z", "2031-03-11T12:00:00.500000Z"),
        ("2031-03-11T12:00:00,5Z", "2031-03-11T12:00:00.500000Z"),  # ISO 8601's own comma
        ("2031-03-11T12:00:00.25Z", "2031-03-11T12:00:00.250000Z"),
        ("2031-03-11T12:00:00.125Z", "2031-03-11T12:00:00.125000Z"),
        ("2031-03-11T12:00:00.1234Z", "2031-03-11T12:00:00.123400Z"),
        ("2031-03-11T12:00:00.12345Z", "2031-03-11T12:00:00.123450Z"),
        ("2031-03-11T12:00:00.123456Z", "2031-03-11T12:00:00.123456Z"),
        ("2031-03-11T12:00:00.1234561Z", "2031-03-11T12:00:00.123456Z"),  # we keep microseconds
        ("2031-03-11T12:00:00.12345612Z", "2031-03-11T12:00:00.123456Z"),
        ("2031-03-11T12:00:00.123456123Z", "2031-03-11T12:00:00.123456Z"),
    ]
    for sent, kept in rows:
        with subtests.test(sent=sent):
            data = data_of(merchant.create(merchant_reference=sent, expires_at=sent), 201)
            assert datetime.fromisoformat(data["expires_at"]) == datetime.fromisoformat(kept)
            assert data["expires_at"].endswith("Z")


@pytest.mark.usefixtures("stopped_at_noon")
def test_an_offset_counts_at_the_edges(merchant: Merchant) -> None:
    """§4.1: five past noon in Tripoli is no time for a checkout that opens at noon UTC."""
    late = merchant.create(expires_at="2031-03-10T12:05:01+02:00")
    assert set(errors_of(late)) == {"expires_at"}
    data_of(merchant.create(expires_at="2031-03-10T14:05:01+02:00"), 201)


@pytest.mark.usefixtures("stopped_at_noon")
def test_what_is_no_time_is_refused(
    merchant: Merchant, database: Database, subtests: pytest.Subtests
) -> None:
    """DESIGN §3: `expires_at` needs an offset or Z; all else that is no date-time is 422 too, never 500."""
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
        "2031-03-11T12:00:00+24:00",  # no place on earth
        "2031-03-11T12:00:00[Africa/Tripoli]",
        "2031-03-11T12:00:60Z",  # a second that is not
        "2031-03-31T23:59:60Z",  # nor was this ever a leap second
        "2031-03-11T24:00:01Z",
        "2031-03-11T12:60:00Z",
        "2031-02-29T12:00:00Z",  # 2031 is no leap year
        "2031-04-31T12:00:00Z",
        "2031-13-01T12:00:00Z",
        "2031-00-10T12:00:00Z",
        "2031-03-00T12:00:00Z",
        "0000-01-01T00:00:00Z",
        "12031-03-11T12:00:00Z",  # a year of five digits
        "-2031-03-11T12:00:00Z",
        "20310311T120000Z",  # the basic form
        "2031-W11-2T12:00:00Z",  # by weeks
        "2031-070T12:00:00Z",  # by days
        "٢٠٣١-٠٣-١١T١٢:٠٠:٠٠Z",
        "Tue, 11 Mar 2031 12:00:00 GMT",
        "tomorrow",
        "now",
        "infinity",  # PostgreSQL would take it
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
def test_an_offset_has_less_than_60_minutes(merchant: Merchant, offset: str) -> None:
    """§4.1: ISO 8601 knows no minute 60; Python reads it as the next hour, and means another moment."""
    assert set(errors_of(merchant.create(expires_at=f"2031-03-11T12:00:00{offset}"))) == {"expires_at"}


def test_the_ends_of_the_calendar_are_refused(
    merchant: Merchant, database: Database, subtests: pytest.Subtests
) -> None:
    """§4.1: too soon or too far like any other, also where the offset leads out of the calendar."""
    rows = [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+02:00",  # in the year before the first
        "0001-01-01T00:00:00-02:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-02:00",  # in the year after the last
        "9999-12-31T23:59:59.999999999+23:59",
    ]
    for sent in rows:
        with subtests.test(sent=sent):
            assert set(errors_of(merchant.create(expires_at=sent))) == {"expires_at"}
    assert written(database) == (0, 0, 0)


def test_the_window_is_reported_together_with_other_failing_fields(
    merchant: Merchant, subtests: pytest.Subtests
) -> None:
    """DESIGN §3: all failing fields at once; a merchant need not correct one to learn of the next."""
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


def test_the_window_is_not_reported_for_a_repeat_that_fails_otherwise(
    merchant: Merchant, other_merchant: Merchant
) -> None:
    """§4.1 rule 5: a repeat's expires_at is not at fault; another application's create is no repeat."""
    data_of(merchant.create(merchant_reference="order-1"), 201)
    wrong = {"merchant_reference": "order-1", "amount": 1, "expires_at": "2020-01-01T00:00:00Z"}
    assert set(errors_of(merchant.create(**wrong))) == {"amount"}
    assert set(errors_of(other_merchant.create(**wrong))) == {"amount", "expires_at"}

"""Calendar days in Libya's time zone, and the first UUID of a moment. Pure."""

from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from shared.platform.web.languages import LIBYA

_YEARS = range(2000, 2200)


def parse_day(text: str) -> date:
    """Parse an ISO date. Raises ValueError if it is not one, or outside the years 2000 to 2199."""
    day = date.fromisoformat(text)
    if day.year not in _YEARS:
        raise ValueError(f"{text} is outside the supported years")
    return day


def start_of_day(day: date) -> datetime:
    midnight = datetime.combine(day, time.min)
    # Not replace(tzinfo=LIBYA): some time zone libraries give a wrong offset when used that way.
    return midnight.replace(tzinfo=UTC) - (LIBYA.utcoffset(midnight) or timedelta())


def local_day(at: datetime) -> date:
    return at.astimezone(LIBYA).date()


def first_uuid_at(at: datetime) -> UUID:
    """Return the smallest UUIDv7 of that millisecond, like the SQL function uuid7_floor."""
    return UUID(int=int(at.timestamp() * 1000) << 80)

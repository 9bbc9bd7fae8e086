"""Days as people in Libya count them, and where their ids begin. Pure."""

from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID

from shared.platform.web.languages import LIBYA

_YEARS = range(2000, 2200)


def parse_day(text: str) -> date:
    """Raises ValueError where it is no day, or one that nobody means."""
    day = date.fromisoformat(text)
    if day.year not in _YEARS:
        raise ValueError(f"{text} is out of our time")
    return day


def start_of_day(day: date) -> datetime:
    midnight = datetime.combine(day, time.min)
    # Asked for the offset of that day, and not given along: some libraries' zones are wrong when they are.
    return midnight.replace(tzinfo=UTC) - (LIBYA.utcoffset(midnight) or timedelta())


def local_day(at: datetime) -> date:
    return at.astimezone(LIBYA).date()


def first_uuid_at(at: datetime) -> UUID:
    """The smallest uuid v7 of that millisecond, as the SQL function uuid7_floor makes it."""
    return UUID(int=int(at.timestamp() * 1000) << 80)

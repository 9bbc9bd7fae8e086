"""Days as people in Libya count them. Pure."""

from datetime import UTC, date, datetime, time, timedelta

from shared.web.languages import LIBYA

EARLIEST = date(2000, 1, 1)
LATEST = date(9999, 12, 1)


def day_in(text: str) -> date:
    """Raises ValueError where it is no day, or one that nobody means."""
    day = date.fromisoformat(text)
    if not EARLIEST <= day <= LATEST:
        raise ValueError(f"{text} is out of our time")
    return day


def begin_of(day: date) -> datetime:
    midnight = datetime.combine(day, time.min)
    # Asked for the offset of that day, and not given along: some libraries' zones are wrong when they are.
    return midnight.replace(tzinfo=UTC) - (LIBYA.utcoffset(midnight) or timedelta())


def day_of(at: datetime) -> date:
    return at.astimezone(LIBYA).date()

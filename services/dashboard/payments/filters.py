"""What of an application's payments somebody wants to see: read from an address, written into one. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from services.dashboard.days import begin_of, day_in
from shared.domain.intents.states import IntentStatus

LONGEST_SEARCH = 255
_SURROGATES = range(0xD800, 0xE000)


class Trouble(StrEnum):
    """Why a filter cannot be used."""

    NO_STATUS = "no_status"
    NO_DAY = "no_day"
    DAYS_REVERSED = "days_reversed"
    TOO_LONG = "too_long"
    NO_TEXT = "no_text"


@dataclass(frozen=True, slots=True)
class Filters:
    status: IntentStatus | None = None
    since: date | None = None
    """The first day, in Libya."""
    until: date | None = None
    """The last one."""
    duplicates: bool = False
    """Only payments that were paid more than once."""
    search: str = ""
    """An intent's uuid, our reference or the merchant's."""

    def __bool__(self) -> bool:
        return self != Filters()

    @property
    def statuses(self) -> list[IntentStatus]:
        return list(IntentStatus) if self.status is None else [self.status]

    @property
    def begin(self) -> datetime | None:
        return None if self.since is None else begin_of(self.since)

    @property
    def end(self) -> datetime | None:
        """From then on no longer."""
        return None if self.until is None else begin_of(self.until + timedelta(days=1))

    def as_arguments(self) -> dict[str, str]:
        """As they stand in an address, and in the audit log."""
        named = {
            "status": self.status or "",
            "from": self.since.isoformat() if self.since else "",
            "to": self.until.isoformat() if self.until else "",
            "duplicates": "yes" if self.duplicates else "",
            "search": self.search,
        }
        return {name: value for name, value in named.items() if value}


def read_filters(given: Mapping[str, str]) -> tuple[Filters, dict[str, Trouble]]:
    """What can be used, and by its name what cannot."""
    troubles: dict[str, Trouble] = {}
    status = given.get("status", "")
    if status and status not in set(IntentStatus):
        troubles["status"] = Trouble.NO_STATUS
    since, until = (_day(given, name, troubles) for name in ("from", "to"))
    if since and until and until < since:
        troubles["to"] = Trouble.DAYS_REVERSED
    search = given.get("search", "")
    if len(search) > LONGEST_SEARCH:
        troubles["search"] = Trouble.TOO_LONG
    elif "\0" in search or any(ord(character) in _SURROGATES for character in search):
        troubles["search"] = Trouble.NO_TEXT
    return Filters(
        status=IntentStatus(status) if status and "status" not in troubles else None,
        since=since,
        until=until if "to" not in troubles else None,
        duplicates=bool(given.get("duplicates")),
        search=search if search.strip() and "search" not in troubles else "",
    ), troubles


def _day(given: Mapping[str, str], name: str, troubles: dict[str, Trouble]) -> date | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        return day_in(text)
    except ValueError:
        troubles[name] = Trouble.NO_DAY
        return None

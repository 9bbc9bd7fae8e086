"""The filters of the payment list, read from a query string and written into one. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from services.dashboard.days import parse_day, start_of_day
from shared.domain.intents.states import IntentStatus

MAX_SEARCH = 255
_SURROGATES = range(0xD800, 0xE000)


class FilterError(StrEnum):
    """Why a filter cannot be used."""

    UNKNOWN_STATUS = "unknown_status"
    INVALID_DAY = "invalid_day"
    DAYS_REVERSED = "days_reversed"
    TOO_LONG = "too_long"
    INVALID_TEXT = "invalid_text"


@dataclass(frozen=True, slots=True)
class PaymentFilters:
    status: IntentStatus | None = None
    since: date | None = None
    """The first day, in Libya's time zone."""
    until: date | None = None
    """The last day."""
    duplicates: bool = False
    """Only payments that were paid more than once."""
    search: str = ""
    """The UUID of an intent, our reference, or the merchant's reference."""

    def __bool__(self) -> bool:
        return self != PaymentFilters()

    @property
    def statuses(self) -> list[IntentStatus]:
        return list(IntentStatus) if self.status is None else [self.status]

    @property
    def begin(self) -> datetime | None:
        return None if self.since is None else start_of_day(self.since)

    @property
    def end(self) -> datetime | None:
        """The first moment after the last day."""
        return None if self.until is None else start_of_day(self.until + timedelta(days=1))

    def as_arguments(self) -> dict[str, str]:
        """Return the filters as they appear in a query string and in the audit log."""
        named = {
            "status": self.status or "",
            "from": self.since.isoformat() if self.since else "",
            "to": self.until.isoformat() if self.until else "",
            "duplicates": "yes" if self.duplicates else "",
            "search": self.search,
        }
        return {name: value for name, value in named.items() if value}


def read_payment_filters(given: Mapping[str, str]) -> tuple[PaymentFilters, dict[str, FilterError]]:
    """Return the usable filters, and the errors of the others by name."""
    errors: dict[str, FilterError] = {}
    status = given.get("status", "")
    if status and status not in set(IntentStatus):
        errors["status"] = FilterError.UNKNOWN_STATUS
    since, until = (_read_day(given, name, errors) for name in ("from", "to"))
    if since and until and until < since:
        errors["to"] = FilterError.DAYS_REVERSED
    search = given.get("search", "")
    if len(search) > MAX_SEARCH:
        errors["search"] = FilterError.TOO_LONG
    elif "\0" in search or any(ord(character) in _SURROGATES for character in search):
        errors["search"] = FilterError.INVALID_TEXT
    return PaymentFilters(
        status=IntentStatus(status) if status and "status" not in errors else None,
        since=since,
        until=until if "to" not in errors else None,
        duplicates=bool(given.get("duplicates")),
        search=search if search.strip() and "search" not in errors else "",
    ), errors


def _read_day(given: Mapping[str, str], name: str, errors: dict[str, FilterError]) -> date | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        return parse_day(text)
    except ValueError:
        errors[name] = FilterError.INVALID_DAY
        return None

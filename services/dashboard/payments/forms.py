"""The filters of the payment list, read from a query string and written into one. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from shared.console.days import parse_day, start_of_day
from shared.console.search_text import MAX_SEARCH, SearchText, is_searchable
from shared.domain.intents.states import IntentStatus

DECLINABLE = (IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.CANCELED)
"""Only of these is it said that the last attempt was declined. Others are paid, or are being paid."""


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
    declined: bool = False
    """Only payments that are not paid and whose last attempt was declined."""
    search: str = ""
    """A reference, the merchant's reference, the customer, the description, the amount or the UUID, or a part of it."""

    def __bool__(self) -> bool:
        return self != PaymentFilters()

    @property
    def statuses(self) -> list[IntentStatus]:
        wanted = list(IntentStatus) if self.status is None else [self.status]
        return [status for status in wanted if not self.declined or status in DECLINABLE]

    @property
    def is_scanned(self) -> bool:
        """Whether no index finds all matches: payments are then read one by one, newest first."""
        return bool(self.search) or self.declined

    @property
    def text(self) -> SearchText | None:
        return SearchText(self.search) if self.search else None

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
            "declined": "yes" if self.declined else "",
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
    elif not is_searchable(search):
        errors["search"] = FilterError.INVALID_TEXT
    return PaymentFilters(
        status=IntentStatus(status) if status and "status" not in errors else None,
        since=since,
        until=until if "to" not in errors else None,
        duplicates=bool(given.get("duplicates")),
        declined=bool(given.get("declined")),
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

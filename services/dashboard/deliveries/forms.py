"""The filters of the delivery list, read from the query string."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from flask_babel import gettext as _

from shared.console.days import first_uuid_at, parse_day, start_of_day
from shared.console.search_text import MAX_SEARCH, SearchText, is_searchable
from shared.domain.deliveries.try_results import EVENTS, STATUSES, ResponseClass, matching_facets
from shared.domain.intents.states import EventType
from shared.platform.uuids import parse_uuid

E = TypeVar("E", bound=StrEnum)

FIRST_ID = UUID(int=0)
LAST_ID = UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class DeliveryFilters:
    status: str | None = None
    event: EventType | None = None
    response_class: ResponseClass | None = None
    first_day: date | None = None
    last_day: date | None = None
    searched_id: UUID | None = None
    """The id of a delivery or of an intent."""
    text: SearchText | None = None
    """A reference or an amount of the payment, or a part of a reference."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The values as they were typed, to show them again."""
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def facets(self) -> list[int] | None:
        """The facets that match, or None for all deliveries."""
        if self.status is None and self.event is None and self.response_class is None:
            return None
        return matching_facets(self.status, self.event, self.response_class)

    @property
    def from_id(self) -> UUID:
        return FIRST_ID if self.first_day is None else first_uuid_at(start_of_day(self.first_day))

    @property
    def until_id(self) -> UUID:
        """The first id after the range."""
        if self.last_day is None:
            return LAST_ID
        return first_uuid_at(start_of_day(self.last_day + timedelta(days=1)))


def read_delivery_filters(given: Mapping[str, str]) -> DeliveryFilters:
    """Read the filters. Unknown choices are ignored; days and ids that cannot be parsed are reported in `errors`."""
    names = ("status", "event", "answer", "from", "until", "id")
    shown = {name: given[name].strip()[:MAX_SEARCH] for name in names if given.get(name, "").strip()}
    errors: dict[str, str] = {}
    first_day, last_day = read_day(shown, "from", errors), read_day(shown, "until", errors)
    if first_day and last_day and last_day < first_day:
        errors["until"] = _("The last day is before the first.")
    searched_id = parse_uuid(shown["id"]) if "id" in shown else None
    text = SearchText(shown["id"]) if "id" in shown and searched_id is None else None
    if text is not None and not is_searchable(text.given):
        errors["id"] = _("A reference cannot contain this text.")
    if len(given.get("id", "").strip()) > MAX_SEARCH:
        errors["id"] = _("Search for at most %(most)d characters.", most=MAX_SEARCH)
    event = _parse_choice(EventType, shown.get("event"))
    return DeliveryFilters(
        status=shown.get("status") if shown.get("status") in STATUSES else None,
        event=event if event in EVENTS else None,
        response_class=_parse_choice(ResponseClass, shown.get("answer")),
        first_day=first_day,
        last_day=last_day,
        searched_id=searched_id,
        text=text,
        given=shown,
        errors=errors,
    )


def read_day(given: Mapping[str, str], name: str, errors: dict[str, str]) -> date | None:
    if name not in given:
        return None
    try:
        return parse_day(given[name])
    except ValueError:
        errors[name] = _("Enter a day as year-month-day, such as 2026-01-31.")
        return None


def _parse_choice(kind: type[E], text: str | None) -> E | None:
    return next((one for one in kind if one == text), None)

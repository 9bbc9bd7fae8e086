"""The page that searches for payments of all merchants."""

from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.monitor.access import add_route
from services.monitor.dependencies import Dependencies
from services.monitor.search.queries import FoundPayment, search_payments
from shared.console.bounded_search import SearchPage
from shared.console.days import first_uuid_at, parse_day
from shared.console.search_text import MAX_SEARCH, SearchText
from shared.platform.uuids import parse_uuid

_MAX_DAY = 20
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class SearchViews:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        text = request.args.get("search", "").replace("\0", "").strip()[:MAX_SEARCH]
        since, error = _parse_since(request.args.get("from", "").strip())
        before = parse_uuid(request.args.get("before", ""))
        page: SearchPage[FoundPayment] | None = None
        if text and not error:
            page = search_payments(self.dependencies.database, SearchText(text), since, before)
        shown = render_template(
            "search/list.html",
            search=text,
            since=request.args.get("from", "")[:_MAX_DAY],
            error=error,
            page=page,
            newest_url=_url(text, since) if before else None,
            older_url=_url(text, since, page.next_before) if page and page.next_before else None,
            further_url=_further_url(text, since, page) if page else None,
        )
        return (shown, _UNPROCESSABLE) if error else shown


def _parse_since(given: str) -> tuple[date | None, str | None]:
    """Return the first day to look at, and what is wrong with it."""
    if not given:
        return None, None
    try:
        return parse_day(given), None
    except ValueError:
        return None, _("Enter a day as year-month-day, such as 2026-01-31.")


def _url(text: str, since: date | None, before: UUID | None = None) -> str:
    arguments: dict[str, Any] = {"search": text, "from": since, "before": before}
    return url_for(".listing", **arguments)


def _further_url(text: str, since: date | None, page: SearchPage[FoundPayment]) -> str | None:
    """Return where the search goes on: with the next rows of the period, or with an earlier period."""
    looked_back = page.looked_back
    if looked_back is None:
        return None
    if not looked_back.is_complete:
        return _url(text, since, page.next_before)
    if looked_back.earlier is None:
        return None
    return _url(text, looked_back.earlier, first_uuid_at(looked_back.to))


def create_search_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("search", __name__)
    add_route(blueprint, "/search", SearchViews(dependencies).listing)
    return blueprint

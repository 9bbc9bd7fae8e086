"""The export of what is filtered, as a download that either comes whole or visibly breaks off."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import structlog
from flask import Response, abort, request
from flask.typing import ResponseReturnValue

from services.dashboard.access import record_action
from services.dashboard.days import day_of
from services.dashboard.dependencies import Dependencies
from services.dashboard.payments.export_places import Places
from services.dashboard.payments.filters import Filters, read_filters
from services.dashboard.payments.listing import Page, list_payments
from services.dashboard.payments.spreadsheet import spreadsheet
from shared.domain.applications.registry import Application
from shared.domain.audit_log import Action
from shared.platform.web.errors import ServiceUnavailable
from shared.platform.web.request_context import current_request_id

log = structlog.get_logger(__name__)
EXPORT_PAGE = 1000
_RETRY_AFTER_S = 30
_LONGEST_SILENCE_S = 60
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class PaymentExport:
    dependencies: Dependencies
    places: Places = field(init=False, compare=False)
    """A download holds a thread for as long as its reader takes; most threads stay for pages."""

    def __post_init__(self) -> None:
        threads = self.dependencies.settings.dashboard.threads
        object.__setattr__(self, "places", Places(max(1, threads // 4)))

    def export(self, application: Application) -> ResponseReturnValue:
        filters, troubles = read_filters(request.args)
        if troubles:
            abort(_UNPROCESSABLE)
        if not self.places.take(application.merchant_id):
            raise ServiceUnavailable(_RETRY_AFTER_S)
        try:
            answer = Response(self._lines(application, filters), content_type="text/csv; charset=utf-8")
        except BaseException:
            self.places.give_back(application.merchant_id)
            raise
        answer.call_on_close(partial(self.places.give_back, application.merchant_id))
        _limit_silence()
        answer.headers.set("Content-Disposition", "attachment", filename=_name(application))
        return answer

    def _lines(self, application: Application, filters: Filters) -> Iterator[bytes]:
        def page_before(before: UUID | None) -> Page:
            with self.dependencies.database.cursor() as cursor:
                return list_payments(cursor, application.id, filters, before, EXPORT_PAGE)

        lines = spreadsheet(page_before)
        if request.method == "GET":
            self._note(application, filters)
        return _telling(lines, current_request_id())

    def _note(self, application: Application, filters: Filters) -> None:
        with self.dependencies.database.transaction() as connection:
            details = filters.as_arguments()
            record_action(
                connection, Action.PAYMENTS_EXPORTED, application_id=application.id, details=details
            )


def _limit_silence() -> None:
    """Who reads nothing for so long is cut off; the server itself would wait for ever."""
    line = request.environ.get("gunicorn.socket")
    if line is not None:
        line.settimeout(_LONGEST_SILENCE_S)


def _telling(lines: Iterator[bytes], request_id: str) -> Iterator[bytes]:
    """The log line of the request itself was written when the download began."""
    try:
        yield from lines
    except Exception:
        log.exception("an export broke off", request_id=request_id)
        raise


def _name(application: Application) -> str:
    words = re.findall(r"[a-z0-9]+", application.name.lower())
    return "-".join(["payments", *words[:5], day_of(datetime.now(UTC)).isoformat()]) + ".csv"

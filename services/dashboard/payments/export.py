"""The CSV export of the filtered payments (RFC 4180, UTF-8), streamed page by page.

Each page is a short statement of its own. Its connection is returned before its rows are sent, so a slow reader keeps
no transaction open. A download is either complete or visibly breaks off.
"""

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from io import StringIO
from threading import Lock
from uuid import UUID

import structlog
from flask import Response, abort, request
from flask.typing import ResponseReturnValue

from services.dashboard.access import record_action
from services.dashboard.dependencies import Dependencies
from services.dashboard.payments.forms import PaymentFilters, read_payment_filters
from services.dashboard.payments.queries import Payment, PaymentPage, list_payments
from services.dashboard.payments.search import search_payments
from shared.console.bounded_search import PageRequest, first_day
from shared.console.days import local_day
from shared.domain.applications.registry import Application
from shared.domain.audit_log import Action
from shared.platform.database.stable_plans import in_index_order
from shared.platform.web.errors import ServiceUnavailable
from shared.platform.web.languages import LIBYA
from shared.platform.web.request_context import current_request_id

log = structlog.get_logger(__name__)
EXPORT_PAGE_SIZE = 1000
_RETRY_AFTER_S = 30
_MAX_IDLE_S = 60
_UNPROCESSABLE = 422
INCOMPLETE = "INCOMPLETE: the export broke off here. Export again."
_BYTE_ORDER_MARK = codecs.BOM_UTF8
"""Without it, Excel does not recognise UTF-8."""
_MINOR_UNITS = Decimal(1000)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20")
"""How a cell starts that a spreadsheet would evaluate. The text comes from customers, so from anybody."""

_COLUMNS: dict[str, Callable[[Payment], str | None]] = {
    "uuid": lambda payment: str(payment.uuid),
    "reference": lambda payment: payment.reference.upper(),
    "merchant_reference": lambda payment: escape_formula(payment.merchant_reference),
    "amount": lambda payment: f"{payment.amount / _MINOR_UNITS:.3f}",
    "amount_minor": lambda payment: str(payment.amount),
    "currency": lambda payment: payment.currency,
    "status": lambda payment: payment.status,
    "method": lambda payment: payment.method,
    "created_at": lambda payment: _format_moment(payment.created_at),
    "updated_at": lambda payment: _format_moment(payment.updated_at),
    "paid_at": lambda payment: _format_moment(payment.paid_at) if payment.paid_at else None,
    "expires_at": lambda payment: _format_moment(payment.expires_at),
    "customer_external_id": lambda payment: escape_formula(payment.customer_external_id),
    "description": lambda payment: escape_formula(payment.description),
    "duplicate": lambda payment: "yes" if payment.is_duplicate else "no",
}

PageBefore = Callable[[UUID | None], PaymentPage]


class ExportSlots:
    """Limits the downloads of one process: a few in total, and one for each merchant."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: set[UUID] = set()
        self._lock = Lock()

    def acquire(self, merchant_id: UUID) -> bool:
        """Take a slot for this merchant and return whether one was free."""
        with self._lock:
            if merchant_id in self._taken or len(self._taken) >= self._limit:
                return False
            self._taken.add(merchant_id)
            return True

    def release(self, merchant_id: UUID) -> None:
        with self._lock:
            self._taken.discard(merchant_id)


def stream_csv(page_before: PageBefore) -> Iterator[bytes]:
    """Return the lines of the file. The first page is read at once, so that its errors become an error response.

    If a later page fails, the file ends with a line that says so, and the exception breaks the connection.
    """
    return _stream(page_before, page_before(None))


def _stream(page_before: PageBefore, page: PaymentPage) -> Iterator[bytes]:
    yield _BYTE_ORDER_MARK + _csv_lines(_COLUMNS)
    while True:
        yield _csv_lines(*([cell(payment) for cell in _COLUMNS.values()] for payment in page.payments))
        if page.older is None:
            return
        try:
            page = page_before(page.older)
        except Exception:
            yield _csv_lines([INCOMPLETE])
            raise


def escape_formula(text: str | None) -> str | None:
    """Prefix text that a spreadsheet would evaluate as a formula."""
    return f"'{text}" if text is not None and text.startswith(_FORMULA_STARTS) else text


def _csv_lines(*rows: Iterable[str | None]) -> bytes:
    out = StringIO(newline="")
    # Quote everything: a spreadsheet that splits at semicolons must not find a formula after one.
    csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue().encode()


def _format_moment(at: datetime) -> str:
    """Libya's time, as on the pages, with its offset."""
    return at.astimezone(LIBYA).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class PaymentExport:
    dependencies: Dependencies
    slots: ExportSlots = field(init=False, compare=False)
    """A download occupies a thread as long as its reader takes. Most threads stay free for pages."""

    def __post_init__(self) -> None:
        threads = self.dependencies.settings.dashboard.threads
        object.__setattr__(self, "slots", ExportSlots(max(1, threads // 4)))

    def export(self, application: Application) -> ResponseReturnValue:
        filters, errors = read_payment_filters(request.args)
        if errors:
            abort(_UNPROCESSABLE)
        if not self.slots.acquire(application.merchant_id):
            raise ServiceUnavailable(_RETRY_AFTER_S)
        try:
            response = Response(self._lines(application, filters), content_type="text/csv; charset=utf-8")
        except BaseException:
            self.slots.release(application.merchant_id)
            raise
        response.call_on_close(partial(self.slots.release, application.merchant_id))
        _limit_idle_time()
        response.headers.set("Content-Disposition", "attachment", filename=_filename(application))
        return response

    def _lines(self, application: Application, filters: PaymentFilters) -> Iterator[bytes]:
        database = self.dependencies.database.kept()  # most of it is read after the request
        since = first_day(database, filters.since, filters.until) if filters.is_scanned else None

        def page_before(before: UUID | None) -> PaymentPage:
            if since is not None:
                wanted = PageRequest(since, before, EXPORT_PAGE_SIZE)
                found = search_payments(database, application.id, filters, wanted)
                return PaymentPage(found.rows, found.next_before)
            with in_index_order(database) as cursor:
                return list_payments(cursor, application.id, filters, before, EXPORT_PAGE_SIZE)

        lines = stream_csv(page_before)
        if request.method == "GET":
            self._record(application, filters)
        return _log_failure(lines, current_request_id())

    def _record(self, application: Application, filters: PaymentFilters) -> None:
        with self.dependencies.database.transaction() as connection:
            details = filters.as_arguments()
            record_action(
                connection, Action.PAYMENTS_EXPORTED, application_id=application.id, details=details
            )


def _limit_idle_time() -> None:
    """Disconnect readers that read nothing for too long. The server itself would wait for ever."""
    connection = request.environ.get("gunicorn.socket")
    if connection is not None:
        connection.settimeout(_MAX_IDLE_S)


def _log_failure(lines: Iterator[bytes], request_id: str) -> Iterator[bytes]:
    """Log a failure of the stream. The request itself was logged when the download started."""
    try:
        yield from lines
    except Exception:
        log.exception("an export failed", request_id=request_id)
        raise


def _filename(application: Application) -> str:
    parts = re.findall(r"[a-z0-9]+", application.name.lower())
    return "-".join(["payments", *parts[:5], local_day(datetime.now(UTC)).isoformat()]) + ".csv"

"""Pages to resend all failed deliveries of a period, or all that wait: the form, the start, progress and stop."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from services.dashboard.access import current_session, record_action
from services.dashboard.deliveries.forms import read_day
from services.dashboard.deliveries.labels import day, resend_refusal_text
from services.dashboard.dependencies import Dependencies
from shared.console.days import local_day, start_of_day
from shared.console.requests import wants_part
from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import Application
from shared.domain.audit_log import Action, AuditDetails
from shared.domain.deliveries.bulk_resend import (
    BulkResend,
    BulkResendInProgressError,
    BulkResendNotFoundError,
    NothingFailedError,
    NothingWaitingError,
    find_running_bulk_resend,
    get_bulk_resend,
    list_latest_bulk_resends,
    start_bulk_resend,
    start_waiting_resend,
    stop_bulk_resend,
)
from shared.domain.deliveries.bulk_selection import DeliveryCount, count_failed, count_waiting
from shared.domain.deliveries.pause import SendingRefusedError, find_send_refusal
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.uuids import parse_uuid, uuid7_datetime

_SEE_OTHER = 303
_UNPROCESSABLE = 422
_DEFAULT_DAYS = 7


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days in Libya's time zone, including the last one."""

    first_day: date
    last_day: date

    @property
    def since(self) -> datetime:
        return start_of_day(self.first_day)

    @property
    def until(self) -> datetime:
        return start_of_day(self.last_day + timedelta(days=1))


@dataclass(frozen=True, slots=True)
class BulkResendPages:
    dependencies: Dependencies

    def choose_failed(self, application: Application) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            return self._render_form(connection, application)

    def resend_failed(self, application: Application) -> ResponseReturnValue:
        """Start a bulk resend. The hidden id makes it idempotent: a second click leads to the same bulk resend."""
        bulk_id = parse_uuid(request.form.get("resend", "")) or abort(_UNPROCESSABLE)
        errors: dict[str, str] = {}
        with self.dependencies.database.transaction() as connection:
            period = _period(_today(connection), errors)
            if period is None:
                return self._render_form(connection, application), _UNPROCESSABLE

        def start(connection: Connection[Any]) -> None:
            begun, is_new = start_bulk_resend(connection, application.id, bulk_id, period.since, period.until)
            if is_new:
                _record_start(connection, application, period, begun)

        return self._start(application, bulk_id, start, otherwise=".choose_failed")

    def retry_waiting(self, application: Application) -> ResponseReturnValue:
        """Resend every delivery that waits for its next try, once. The hidden id makes it idempotent."""
        bulk_id = parse_uuid(request.form.get("resend", "")) or abort(_UNPROCESSABLE)

        def start(connection: Connection[Any]) -> None:
            begun, is_new = start_waiting_resend(connection, application.id, bulk_id)
            if is_new:
                details: AuditDetails = {"resend": str(begun.id), "count": _found(begun)}
                record_action(
                    connection,
                    Action.WAITING_DELIVERIES_RESENT,
                    application_id=application.id,
                    details=details,
                )

        return self._start(application, bulk_id, start, otherwise=".listing")

    def _start(
        self,
        application: Application,
        bulk_id: UUID,
        start: Callable[[Connection[Any]], None],
        *,
        otherwise: str,
    ) -> ResponseReturnValue:
        """Call `start` in a transaction and lead to the progress, or back to `otherwise` with the reason."""
        try:
            with self.dependencies.database.transaction() as connection:
                start(connection)
        except BulkResendInProgressError as error:
            bulk_id = _say_in_progress(error)
        except NothingFailedError:
            flash(_("No delivery of this period has failed."), "info")
            return redirect(url_for(otherwise, application=application.id), _SEE_OTHER)
        except NothingWaitingError:
            flash(_("No delivery waits for its next try."), "info")
            return redirect(url_for(otherwise, application=application.id), _SEE_OTHER)
        except SendingRefusedError as error:
            flash(resend_refusal_text(error.refusal, application.id), "bad")
            return redirect(url_for(otherwise, application=application.id), _SEE_OTHER)
        except BulkResendNotFoundError:
            abort(404)
        return redirect(url_for(".progress", application=application.id, resend=bulk_id), _SEE_OTHER)

    def progress(self, application: Application, resend: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            bulk = _get_or_404(connection, application, resend)
        template = "deliveries/progress_partial.html" if wants_part() else "deliveries/progress.html"
        return render_template(template, bulk=bulk, share=progress_of(bulk), last_day=_last_day, day=day)

    def stop(self, application: Application, resend: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            if stop_bulk_resend(connection, application.id, resend):
                bulk = _get_or_404(connection, application, resend)
                details: AuditDetails = {"resend": str(resend), "resent": bulk.resent}
                record_action(
                    connection, Action.RESEND_STOPPED, application_id=application.id, details=details
                )
                flash(_("Stopped. Deliveries that were queued before are still sent."), "good")
            else:
                _get_or_404(connection, application, resend)
                flash(_("It had already ended."), "info")
        return redirect(url_for(".progress", application=application.id, resend=resend), _SEE_OTHER)

    def _render_form(self, connection: Connection[Any], application: Application) -> str:
        today = _today(connection)
        errors: dict[str, str] = {}
        period = _period(today, errors)
        refusal = find_send_refusal(connection, application.id)
        return render_template(
            "deliveries/resend_failed.html",
            given={
                "from": request.values.get("from", str(today - timedelta(days=_DEFAULT_DAYS - 1)))[:20],
                "until": request.values.get("until", str(today))[:20],
            },
            errors=errors,
            period=period,
            found=period and count_failed(connection, application.id, period.since, period.until),
            under_way=find_running_bulk_resend(connection, application.id),
            latest=list_latest_bulk_resends(connection, application.id),
            last_day=_last_day,
            day=day,
            refusal=refusal and resend_refusal_text(refusal, application.id),
            resend_id=uuid4(),
        )


def retry_values(database: Database, application: Application) -> dict[str, object]:
    """Return what the button of the list needs to resend all that waits: how many, and what is under way."""
    if not current_session().may(Permission.RESEND):
        return {"waiting": DeliveryCount(0, is_exact=True)}
    with database.transaction() as connection:
        return {
            "waiting": count_waiting(connection, application.id),
            "under_way": find_running_bulk_resend(connection, application.id),
            "resend_id": uuid4(),
        }


def progress_of(bulk: BulkResend) -> float:
    """Return the progress from 0 to 1. With too many deliveries to count, it is the share of the period done."""
    if bulk.outcome == "done":
        return 1.0
    if bulk.is_count_exact:
        return min(1.0, bulk.resent / bulk.found)
    whole = (bulk.until - bulk.since).total_seconds()
    done = uuid7_datetime(bulk.last_delivery_id) - bulk.since
    return min(1.0, max(0.0, done.total_seconds() / whole))


def _record_start(
    connection: Connection[Any], application: Application, period: Period, begun: BulkResend
) -> None:
    details: AuditDetails = {
        "resend": str(begun.id),
        "count": _found(begun),
        "from": str(period.first_day),
        "until": str(period.last_day),
    }
    record_action(connection, Action.FAILED_DELIVERIES_RESENT, application_id=application.id, details=details)


def _found(bulk: BulkResend) -> int | str:
    return bulk.found if bulk.is_count_exact else f">{bulk.found}"


def _say_in_progress(error: BulkResendInProgressError) -> UUID:
    """Tell that another bulk resend is under way, and return its id."""
    flash(_("Deliveries are already being resent. Wait until that ends, or stop it."), "bad")
    return error.running_id


def _period(today: date, errors: dict[str, str]) -> Period | None:
    """Return the period of the form, by default the last seven days. None if it is invalid; `errors` says why."""
    given = {name: request.values[name] for name in ("from", "until") if request.values.get(name)}
    first_day = read_day(given, "from", errors) or today - timedelta(days=_DEFAULT_DAYS - 1)
    last_day = read_day(given, "until", errors) or today
    if not errors and last_day < first_day:
        errors["until"] = _("The last day is before the first.")
    return None if errors else Period(first_day, last_day)


def _last_day(bulk: BulkResend) -> datetime:
    """Return a moment on the last day of the period."""
    return bulk.until - timedelta(seconds=1)


def _today(connection: Connection[Any]) -> date:
    return local_day(fetch_scalar(connection, "select mizan_now()"))


def _get_or_404(connection: Connection[Any], application: Application, wanted: UUID) -> BulkResend:
    try:
        return get_bulk_resend(connection, application.id, wanted)
    except BulkResendNotFoundError:
        abort(404)

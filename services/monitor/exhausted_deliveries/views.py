"""Pages about deliveries that used up their tries: the list, one delivery, a resend, and bulk resends."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from flask_babel import ngettext
from psycopg import Connection

from services.monitor.access import add_route, current_session, record_action
from services.monitor.dead_letters.views import parse_offset
from services.monitor.dependencies import Dependencies
from services.monitor.exhausted_deliveries import labels
from services.monitor.exhausted_deliveries.queries import (
    BulkResend,
    find_bulk_resend,
    find_intent,
    list_bulk_resends,
    list_tries,
)
from shared.console.language import list_separator
from shared.console.requests import wants_part
from shared.domain.applications.registry import application_names
from shared.domain.audit_log import Action, AuditDetails
from shared.domain.deliveries.bulk_resend import BulkResendSummary, resend_all_exhausted, stop_bulk_resend
from shared.domain.deliveries.exhausted import ExhaustedDelivery, ExhaustedPage, get_exhausted, list_exhausted
from shared.domain.deliveries.pause import SendingRefusedError, find_send_refusal
from shared.domain.deliveries.resend import DeliveryNotFoundError, TooManyResendsError, resend_exhausted
from shared.domain.deliveries.signing import build_body
from shared.platform.database.pool import fetch_scalar
from shared.platform.settings import RETRY_STEPS
from shared.platform.uuids import parse_uuid

_MAX_LISTED = 100
_MAX_NAMED = 5

_PAGE = 25
_SCAN_SIZE = 100
_MAX_SCANS = 10
"""How many pages of the topic are searched for one application's deliveries before the page is shown."""
_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class ExhaustedDeliveryViews:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        application = parse_uuid(request.args.get("application", ""))
        before = parse_offset(request.args.get("before", ""))
        with self.dependencies.database.transaction() as connection:
            page = self._page(connection, application, before)
            names = application_names(connection, [application]) if application else {}
        older = page.next_before is not None
        return render_template(
            "exhausted_deliveries/list.html",
            deliveries=page.deliveries,
            application=application,
            name=names.get(application) if application else None,
            labels=labels,
            newest_url=url_for(".listing", application=application) if before is not None else None,
            older_url=url_for(".listing", application=application, before=page.next_before)
            if older
            else None,
        )

    def show(self, delivery: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            found = _get_exhausted_or_404(connection, delivery)
            tries = list_tries(connection, delivery)
            intent = find_intent(connection, delivery)
            refusal = find_send_refusal(connection, found.application_id)
        body = build_body(str(delivery), found.event or "", str(intent)).decode()
        return render_template(
            "exhausted_deliveries/show_partial.html" if wants_part() else "exhausted_deliveries/show.html",
            delivery=found,
            tries=tries,
            body=body,
            intent=intent,
            refusal=refusal and labels.REFUSALS[refusal],
            resend_id=uuid4(),
            steps=RETRY_STEPS + 1,
            labels=labels,
        )

    def resend(self, delivery: UUID) -> ResponseReturnValue:
        """Resend one delivery. The hidden resend id makes a second click or a reload have no further effect."""
        resend_id = parse_uuid(request.form.get("resend", "")) or abort(_UNPROCESSABLE)
        try:
            with self.dependencies.database.transaction() as connection:
                status = _get_exhausted_or_404(connection, delivery).status
                is_wanted = status == "failed"
                is_new = is_wanted and resend_exhausted(
                    connection, delivery, resend_id, current_session().actor
                )
            if is_new:
                flash(_("The delivery is being resent. The new try appears here in a moment."), "good")
            elif is_wanted:
                flash(_("This resend was already requested."), "info")
            else:
                flash(_("Nothing was resent: this delivery is no longer failed."), "info")
        except SendingRefusedError as error:
            flash(str(labels.REFUSALS[error.refusal]), "bad")
        except TooManyResendsError:
            flash(_("This delivery was resent several times within a minute. Try again in a minute."), "bad")
        return redirect(url_for(".show", delivery=delivery), _SEE_OTHER)

    def _page(
        self, connection: Connection[Any], application: UUID | None, before: int | None
    ) -> ExhaustedPage:
        kafka = self.dependencies.settings.kafka
        if application is None:
            return list_exhausted(connection, kafka, before, _PAGE)
        found: list[ExhaustedDelivery] = []
        for _scan in range(_MAX_SCANS):
            page = list_exhausted(connection, kafka, before, _SCAN_SIZE)
            found.extend(one for one in page.deliveries if one.application_id == application)
            before = page.next_before
            if before is None or len(found) >= _PAGE:
                break
        return ExhaustedPage(found, before)


def _get_exhausted_or_404(connection: Connection[Any], delivery_id: UUID) -> ExhaustedDelivery:
    try:
        return get_exhausted(connection, delivery_id)
    except DeliveryNotFoundError:
        abort(404)


_PERIODS = {name: timedelta(days=int(name.removesuffix("d"))) for name in labels.PERIODS}
_DEFAULT_PERIOD = "3d"


@dataclass(frozen=True, slots=True)
class BulkResendViews:
    dependencies: Dependencies

    def bulk_resend_form(self) -> ResponseReturnValue:
        return _render_form(None)

    def start_bulk_resend(self) -> ResponseReturnValue:
        """Start a bulk resend for each application. The hidden form token makes a second click start nothing more."""
        form_token = parse_uuid(request.form.get("form_token", "")) or abort(_UNPROCESSABLE)
        back = _PERIODS.get(request.form.get("back", ""))
        if back is None:
            return _render_form(_("Choose one of these periods.")), _UNPROCESSABLE
        with self.dependencies.database.transaction() as connection:
            until = _now(connection)
            outcome = resend_all_exhausted(
                connection, until - back, until, current_session().actor, form_token
            )
        _flash_summary(outcome)
        return redirect(url_for(".bulk_resends"), _SEE_OTHER)

    def bulk_resends(self) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            found = list_bulk_resends(connection, _MAX_LISTED)
        template = (
            "exhausted_deliveries/bulk_resends_partial.html"
            if wants_part()
            else "exhausted_deliveries/bulk_resends.html"
        )
        return render_template(template, resends=found, labels=labels)

    def bulk_resend_progress(self, resend: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            found = _get_bulk_resend_or_404(connection, resend)
        template = (
            "exhausted_deliveries/bulk_resend_partial.html"
            if wants_part()
            else "exhausted_deliveries/bulk_resend.html"
        )
        return render_template(template, resend=found, labels=labels)

    def stop_bulk_resend(self, resend: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            application_id = _get_bulk_resend_or_404(connection, resend).application_id
            is_new = stop_bulk_resend(connection, application_id, resend)
            if is_new:
                details: AuditDetails = {
                    "resend": str(resend),
                    "resent": _get_bulk_resend_or_404(connection, resend).resent,
                }
                record_action(
                    connection, Action.RESEND_STOPPED, application_id=application_id, details=details
                )
        if is_new:
            flash(_("Stopped. Deliveries that are already queued are still sent."), "good")
        else:
            flash(_("It had already ended."), "info")
        return redirect(url_for(".bulk_resend_progress", resend=resend), _SEE_OTHER)


def _render_form(error: str | None) -> str:
    back = request.values.get("back", _DEFAULT_PERIOD)
    return render_template(
        "exhausted_deliveries/bulk_resend_form.html",
        periods=labels.PERIODS,
        back=back if back in _PERIODS else _DEFAULT_PERIOD,
        error=error,
        form_token=uuid4(),
    )


def _flash_summary(outcome: BulkResendSummary) -> None:
    if outcome.started:
        flash(
            ngettext(
                "Failed deliveries of %(num)d application are being resent.",
                "Failed deliveries of %(num)d applications are being resent.",
                len(outcome.started),
            ),
            "good",
        )
    if not outcome.is_all:
        flash(
            _("There are too many applications for one request. Repeat it to continue with the rest."),
            "bad",
        )
    elif not outcome.started and not outcome.refused:
        flash(_("No delivery failed in this period, or all were already resent."), "info")
    if outcome.refused:
        named = [one.application for one in outcome.refused[:_MAX_NAMED]]
        more = "…" if len(outcome.refused) > _MAX_NAMED else ""
        flash(
            _(
                "Not resent, because the application has no webhook URL, is paused,"
                " or already has a resend in progress: %(names)s",
                names=list_separator().join(named) + more,
            ),
            "bad",
        )


def _get_bulk_resend_or_404(connection: Connection[Any], resend: UUID) -> BulkResend:
    return find_bulk_resend(connection, resend) or abort(404)


def _now(connection: Connection[Any]) -> datetime:
    now: datetime = fetch_scalar(connection, "select mizan_now()")
    return now


_POST = ("POST",)


def create_exhausted_deliveries_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("exhausted_deliveries", __name__)
    deliveries = ExhaustedDeliveryViews(dependencies)
    add_route(blueprint, "/exhausted", deliveries.listing)
    add_route(blueprint, "/exhausted/<uuid:delivery>", deliveries.show)
    add_route(blueprint, "/exhausted/<uuid:delivery>/resend", deliveries.resend, _POST)
    bulk_resends = BulkResendViews(dependencies)
    add_route(blueprint, "/exhausted/resend-all", bulk_resends.bulk_resend_form)
    add_route(blueprint, "/exhausted/resends", bulk_resends.bulk_resends)
    add_route(blueprint, "/exhausted/resends", bulk_resends.start_bulk_resend, _POST)
    add_route(blueprint, "/exhausted/resends/<uuid:resend>", bulk_resends.bulk_resend_progress)
    add_route(blueprint, "/exhausted/resends/<uuid:resend>/stop", bulk_resends.stop_bulk_resend, _POST)
    return blueprint

"""Pages of the delivery list and of one delivery; and all routes."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from services.dashboard.access import record_action
from services.dashboard.deliveries import labels
from services.dashboard.deliveries.forms import DeliveryFilters, read_delivery_filters
from services.dashboard.deliveries.labels import resend_refusal_text
from services.dashboard.deliveries.queries import (
    Delivery,
    DeliveryPage,
    find_delivery,
    find_pending_resend,
    list_deliveries,
    list_tries,
)
from services.dashboard.deliveries.resend_views import BulkResendPages, retry_values
from services.dashboard.deliveries.search import search_deliveries
from services.dashboard.deliveries.sent_request import describe_request
from services.dashboard.dependencies import Dependencies
from shared.console.days import first_uuid_at
from shared.console.guard import add_route
from shared.console.requests import wants_part
from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import Application
from shared.domain.audit_log import Action
from shared.domain.deliveries.pause import SendingRefusedError, find_send_refusal
from shared.domain.deliveries.resend import TooManyResendsError, request_resend
from shared.platform.settings import RETRY_STEPS
from shared.platform.uuids import parse_uuid

_SEE_OTHER = 303
_ALL = "/applications/<application>/deliveries"
_POST = ("POST",)


@dataclass(frozen=True, slots=True)
class DeliveryPages:
    dependencies: Dependencies

    def listing(self, application: Application) -> ResponseReturnValue:
        filters = read_delivery_filters(request.args)
        before = parse_uuid(request.args.get("before", ""))
        database = self.dependencies.database
        if filters.text is not None and not filters.errors:
            page = search_deliveries(database, application.id, filters, filters.text, before)
        else:
            page = list_deliveries(database, application.id, filters, before)
        retries = {} if wants_part() else retry_values(database, application)
        return render_template(
            "deliveries/list_partial.html" if wants_part() else "deliveries/listing.html",
            page=page,
            filters=filters,
            before=before,
            labels=labels,
            further_url=_further_url(application, filters, page),
            **retries,
        )

    def show(self, application: Application, delivery: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            shown = self._delivery_values(connection, application, delivery)
            refusal = find_send_refusal(connection, application.id)
        if wants_part():
            return render_template("deliveries/delivery_partial.html", **shown)
        return render_template(
            "deliveries/delivery.html",
            **shown,
            refusal=refusal and resend_refusal_text(refusal, application.id),
            resend_id=uuid4(),
        )

    def resend(self, application: Application, delivery: UUID) -> ResponseReturnValue:
        """Resend once. The hidden id makes it idempotent: a second click or a reload is the same resend."""
        resend_id = parse_uuid(request.form.get("resend_id", "")) or abort(422)
        try:
            with self.dependencies.database.transaction() as connection:
                _find_or_404(connection, application, delivery)
                is_new = request_resend(connection, delivery, resend_id)
                if is_new:
                    details = {"delivery": str(delivery)}
                    record_action(
                        connection, Action.DELIVERY_RESENT, application_id=application.id, details=details
                    )
            if is_new:
                flash(_("The delivery is being resent. The new try appears here in a moment."), "good")
            else:
                flash(_("This resend was already requested."), "info")
        except SendingRefusedError as error:
            flash(resend_refusal_text(error.refusal, application.id), "bad")
        except TooManyResendsError:
            flash(_("This delivery was resent several times within a minute. Try again in a minute."), "bad")
        return redirect(url_for(".show", application=application.id, delivery=delivery), _SEE_OTHER)

    def _delivery_values(
        self, connection: Connection[Any], application: Application, wanted: UUID
    ) -> dict[str, Any]:
        delivery = _find_or_404(connection, application, wanted)
        tries = list_tries(connection, application.id, delivery)
        return {
            "delivery": delivery,
            "tries": tries,
            "sent": describe_request(
                connection, self.dependencies.webhook_box, application.id, delivery, tries
            ),
            "pending_resend": find_pending_resend(connection, delivery.id),
            "steps": RETRY_STEPS + 1,
        }


def _further_url(application: Application, filters: DeliveryFilters, page: DeliveryPage) -> str | None:
    """Return where a search that ended on this page continues: in the same period, or in an earlier one."""
    looked_back = page.looked_back
    values: dict[str, Any] = dict(filters.given)
    if looked_back is None or (looked_back.is_complete and looked_back.earlier is None):
        return None
    if looked_back.is_complete:
        values |= {"from": looked_back.earlier, "before": first_uuid_at(looked_back.to)}
    else:
        values["before"] = page.before
    return url_for(".listing", application=application.id, **values)


def _find_or_404(connection: Connection[Any], application: Application, wanted: UUID) -> Delivery:
    return find_delivery(connection, application.id, wanted) or abort(404)


def deliveries_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("deliveries", __name__)
    pages = DeliveryPages(dependencies)
    add_route(blueprint, _ALL, pages.listing, Permission.READ)
    add_route(blueprint, f"{_ALL}/<uuid:delivery>", pages.show, Permission.READ)
    add_route(blueprint, f"{_ALL}/<uuid:delivery>/resend", pages.resend, Permission.RESEND, _POST)
    resending = BulkResendPages(dependencies)
    add_route(blueprint, f"{_ALL}/resend-failed", resending.choose_failed, Permission.RESEND)
    add_route(blueprint, f"{_ALL}/resends", resending.resend_failed, Permission.RESEND, _POST)
    add_route(blueprint, f"{_ALL}/retry-waiting", resending.retry_waiting, Permission.RESEND, _POST)
    add_route(blueprint, f"{_ALL}/resends/<uuid:resend>", resending.progress, Permission.READ)
    add_route(blueprint, f"{_ALL}/resends/<uuid:resend>/stop", resending.stop, Permission.RESEND, _POST)
    return blueprint

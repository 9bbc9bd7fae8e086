"""Pages of the payment list and of one payment; and all routes. Nothing is changed here."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from flask.typing import ResponseReturnValue

from services.dashboard.dependencies import Dependencies
from services.dashboard.payments import labels
from services.dashboard.payments.export import PaymentExport
from services.dashboard.payments.forms import PaymentFilters, read_payment_filters
from services.dashboard.payments.queries import PaymentPage, find_payment, list_payments
from services.dashboard.payments.timeline import build_timeline
from shared.console.guard import add_route
from shared.console.payment_labels import METHODS
from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import Application
from shared.platform.database.stable_plans import in_index_order
from shared.platform.uuids import parse_uuid

_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class PaymentPages:
    dependencies: Dependencies

    def listing(self, application: Application) -> ResponseReturnValue:
        filters, errors = read_payment_filters(request.args)
        before = parse_uuid(request.args.get("before", ""))
        page = PaymentPage([], None)
        if not errors:
            with in_index_order(self.dependencies.database) as cursor:
                page = list_payments(cursor, application.id, filters, before)
        shown = render_template(
            "payments/listing.html",
            page=page,
            filters=filters,
            given=request.args,
            errors={name: labels.FILTER_ERRORS[error] for name, error in errors.items()},
            labels=labels,
            method_names=METHODS,
            newest_url=_filtered_url(".listing", application, filters) if before else None,
            older_url=_filtered_url(".listing", application, filters, page.older) if page.older else None,
            export_url=_filtered_url(".export", application, filters),
        )
        return (shown, _UNPROCESSABLE) if errors else shown

    def show(self, application: Application, intent: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            payment = find_payment(connection, application.id, intent) or abort(404)
        return render_template(
            "payments/show.html",
            payment=payment,
            timeline=build_timeline(payment),
            labels=labels,
            method_names=METHODS,
            checkout_url=f"{self.dependencies.settings.public_urls.checkout}/pay/{intent}",
        )


def _filtered_url(
    endpoint: str, application: Application, filters: PaymentFilters, before: UUID | None = None
) -> str:
    values: dict[str, Any] = {"application": application.id, **filters.as_arguments(), "before": before}
    return url_for(endpoint, **values)


def payments_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("payments", __name__)
    pages = PaymentPages(dependencies)
    add_route(blueprint, "/applications/<application>/payments", pages.listing, Permission.READ)
    add_route(blueprint, "/applications/<application>/payments/<uuid:intent>", pages.show, Permission.READ)
    export = PaymentExport(dependencies).export
    add_route(blueprint, "/applications/<application>/payments.csv", export, Permission.READ)
    return blueprint

"""Pages of the payment list and of one payment; and all routes. Nothing is changed here."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, render_template, request, url_for
from flask.typing import ResponseReturnValue

from services.dashboard.dependencies import Dependencies
from services.dashboard.payments import labels
from services.dashboard.payments.export import PaymentExport
from services.dashboard.payments.forms import PaymentFilters, read_payment_filters
from services.dashboard.payments.queries import PAGE_SIZE, PaymentPage, find_payment, list_payments
from services.dashboard.payments.search import search_payments
from services.dashboard.payments.timeline import build_timeline
from shared.console.bounded_search import PageRequest, first_day
from shared.console.days import first_uuid_at
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
            page = self._page(application, filters, before)
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
            further_url=_further_url(application, filters, page),
            export_url=_filtered_url(".export", application, filters),
        )
        return (shown, _UNPROCESSABLE) if errors else shown

    def _page(self, application: Application, filters: PaymentFilters, before: UUID | None) -> PaymentPage:
        database = self.dependencies.database
        if not filters.is_scanned:
            with in_index_order(database) as cursor:
                return list_payments(cursor, application.id, filters, before)
        since = first_day(database, filters.since, filters.until)
        wanted = PageRequest(since, before, PAGE_SIZE, shows_all_found=True)
        found = search_payments(database, application.id, filters, wanted)
        return PaymentPage(found.rows, found.next_before, found.looked_back)

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


def _further_url(application: Application, filters: PaymentFilters, page: PaymentPage) -> str | None:
    """Return where a search that ended on this page continues: in the same period, or in an earlier one."""
    looked_back = page.looked_back
    if looked_back is None:
        return None
    if not looked_back.is_complete:
        return _filtered_url(".listing", application, filters, page.older)
    if looked_back.earlier is None:
        return None
    earlier = replace(filters, since=looked_back.earlier)
    return _filtered_url(".listing", application, earlier, first_uuid_at(looked_back.to))


def payments_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("payments", __name__)
    pages = PaymentPages(dependencies)
    add_route(blueprint, "/applications/<application>/payments", pages.listing, Permission.READ)
    add_route(blueprint, "/applications/<application>/payments/<uuid:intent>", pages.show, Permission.READ)
    export = PaymentExport(dependencies).export
    add_route(blueprint, "/applications/<application>/payments.csv", export, Permission.READ)
    return blueprint

"""The pages of payments. Nobody changes anything here."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import abort, render_template, request, url_for
from flask.typing import ResponseReturnValue

from services.dashboard.dependencies import Dependencies
from services.dashboard.payments import words
from services.dashboard.payments.filters import Filters, read_filters
from services.dashboard.payments.listing import Page, list_payments
from services.dashboard.payments.looking import find_payment
from services.dashboard.payments.timeline import timeline_of
from shared.console.payment_labels import METHODS
from shared.domain.applications.registry import Application
from shared.platform.uuids import parse_uuid

_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class PaymentPages:
    dependencies: Dependencies

    def listing(self, application: Application) -> ResponseReturnValue:
        filters, troubles = read_filters(request.args)
        before = parse_uuid(request.args.get("before", ""))
        page = Page([], None)
        if not troubles:
            with self.dependencies.database.cursor() as cursor:
                page = list_payments(cursor, application.id, filters, before)
        shown = render_template(
            "payments/listing.html",
            page=page,
            filters=filters,
            given=request.args,
            troubles={name: words.TROUBLES[trouble] for name, trouble in troubles.items()},
            words=words,
            method_names=METHODS,
            newest_url=_url(".listing", application, filters) if before else None,
            older_url=_url(".listing", application, filters, page.older) if page.older else None,
            export_url=_url(".export", application, filters),
        )
        return (shown, _UNPROCESSABLE) if troubles else shown

    def show(self, application: Application, intent: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            payment = find_payment(connection, application.id, intent) or abort(404)
        return render_template(
            "payments/show.html",
            payment=payment,
            timeline=timeline_of(payment),
            words=words,
            method_names=METHODS,
            checkout_url=f"{self.dependencies.settings.public_urls.checkout}/pay/{intent}",
        )


def _url(endpoint: str, application: Application, filters: Filters, before: UUID | None = None) -> str:
    values: dict[str, Any] = {"application": application.id, **filters.as_arguments(), "before": before}
    return url_for(endpoint, **values)

"""The list of an application's deliveries, and each of them with all that is known of it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from flask_babel import lazy_gettext
from psycopg import Connection

from services.dashboard.access import record_action
from services.dashboard.deliveries import words
from services.dashboard.deliveries.delivery import (
    Delivery,
    find_delivery,
    find_waiting_resend,
    list_tries,
)
from services.dashboard.deliveries.filters import read_filters
from services.dashboard.deliveries.listing import find_page
from services.dashboard.deliveries.request_sent import request_sent
from services.dashboard.dependencies import Dependencies
from shared.console.requests import wants_part
from shared.domain.applications.registry import Application
from shared.domain.audit_log import Action
from shared.domain.deliveries.pause import SendingRefusedError, SendRefusal, find_send_refusal
from shared.domain.deliveries.resend import request_resend
from shared.platform.settings import RETRY_STEPS
from shared.platform.uuids import parse_uuid

_SEE_OTHER = 303


_REFUSED = {
    SendRefusal.NO_URL: lazy_gettext(
        "Nothing can be resent: the application has no webhook URL. Set one first."
    ),
    SendRefusal.PAUSED: lazy_gettext(
        "Nothing can be resent: an operator has paused the webhooks of this application."
    ),
}


def refusal_text(refusal: SendRefusal) -> str:
    return str(_REFUSED[refusal])


@dataclass(frozen=True, slots=True)
class DeliveryPages:
    dependencies: Dependencies

    def listing(self, application: Application) -> ResponseReturnValue:
        filters = read_filters(request.args)
        before = parse_uuid(request.args.get("before", ""))
        page = find_page(self.dependencies.database, application.id, filters, before)
        template = "deliveries/list_part.html" if wants_part() else "deliveries/listing.html"
        return render_template(template, page=page, filters=filters, before=before, words=words)

    def show(self, application: Application, delivery: UUID) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            shown = self._shown(connection, application, delivery)
            refusal = find_send_refusal(connection, application.id)
        if wants_part():
            return render_template("deliveries/delivery_part.html", **shown)
        return render_template(
            "deliveries/delivery.html",
            **shown,
            refusal=refusal and refusal_text(refusal),
            resend_id=uuid4(),
        )

    def resend(self, application: Application, delivery: UUID) -> ResponseReturnValue:
        """What the form hides names the wish: a second click, or a reload, is the same one."""
        resend_id = parse_uuid(request.form.get("resend_id", "")) or abort(422)
        try:
            with self.dependencies.database.transaction() as connection:
                _found(connection, application, delivery)
                is_new = request_resend(connection, delivery, resend_id)
                if is_new:
                    details = {"delivery": str(delivery)}
                    record_action(
                        connection, Action.DELIVERY_RESENT, application_id=application.id, details=details
                    )
            if is_new:
                flash(_("The delivery is sent once more. Its try appears here in a moment."), "good")
            else:
                flash(_("This resend was asked for already."), "info")
        except SendingRefusedError as error:
            flash(refusal_text(error.refusal), "bad")
        return redirect(url_for(".show", application=application.id, delivery=delivery), _SEE_OTHER)

    def _shown(self, connection: Connection[Any], application: Application, wanted: UUID) -> dict[str, Any]:
        delivery = _found(connection, application, wanted)
        tries = list_tries(connection, application.id, delivery)
        return {
            "delivery": delivery,
            "tries": tries,
            "sent": request_sent(connection, self.dependencies.box, application.id, delivery, tries),
            "waiting": find_waiting_resend(connection, delivery.id),
            "steps": RETRY_STEPS + 1,
            "words": words,
        }


def _found(connection: Connection[Any], application: Application, wanted: UUID) -> Delivery:
    return find_delivery(connection, application.id, wanted) or abort(404)

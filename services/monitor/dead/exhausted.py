"""Deliveries that used up their tries: the list, one with its tries, and one more try for it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from services.monitor.access import signed_in
from services.monitor.dead import words
from services.monitor.dead.letters import offset_in
from services.monitor.dead.tries import intent_of, list_tries
from services.monitor.workshop import Workshop
from shared.console.requests import wants_part
from shared.domain.applications.registry import names_of
from shared.domain.deliveries.exhausted import ExhaustedDelivery, ExhaustedPage, get_exhausted, list_exhausted
from shared.domain.deliveries.pause import SendingRefusedError, find_send_refusal
from shared.domain.deliveries.resend import DeliveryNotFoundError, resend_exhausted
from shared.domain.deliveries.signing import build_body
from shared.platform.settings import RETRY_STEPS
from shared.platform.uuids import uuid_in

_PAGE = 25
_LOOK = 100
_MOST_LOOKS = 10
"""For those of one application: so many times the newest are looked through before the page says how far it came."""
_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class ExhaustedPages:
    workshop: Workshop

    def exhausted(self) -> ResponseReturnValue:
        application = uuid_in(request.args.get("application", ""))
        before = offset_in(request.args.get("before", ""))
        with self.workshop.database.transaction() as connection:
            page = self._page(connection, application, before)
            names = names_of(connection, [application]) if application else {}
        older = page.next_before is not None
        return render_template(
            "dead/exhausted.html",
            deliveries=page.deliveries,
            application=application,
            name=names.get(application) if application else None,
            words=words,
            newest_url=url_for(".exhausted", application=application) if before is not None else None,
            older_url=url_for(".exhausted", application=application, before=page.next_before)
            if older
            else None,
        )

    def delivery(self, delivery: UUID) -> ResponseReturnValue:
        with self.workshop.database.transaction() as connection:
            found = _found(connection, delivery)
            tries = list_tries(connection, delivery)
            intent = intent_of(connection, delivery)
            refusal = find_send_refusal(connection, found.application_id)
        body = build_body(str(delivery), found.event or "", str(intent)).decode()
        return render_template(
            "dead/delivery_part.html" if wants_part() else "dead/delivery.html",
            delivery=found,
            tries=tries,
            body=body,
            intent=intent,
            refusal=refusal and words.REFUSALS[refusal],
            resend_id=uuid4(),
            steps=RETRY_STEPS + 1,
            words=words,
        )

    def resend(self, delivery: UUID) -> ResponseReturnValue:
        """What the form hides names the wish: a second click, or a reload, is the same one."""
        resend_id = uuid_in(request.form.get("resend", "")) or abort(_UNPROCESSABLE)
        try:
            with self.workshop.database.transaction() as connection:
                status = _found(connection, delivery).status
                is_wanted = status == "failed"
                is_new = is_wanted and resend_exhausted(connection, delivery, resend_id, signed_in().actor)
            if is_new:
                flash(_("The delivery is sent once more. Its try appears here in a moment."), "good")
            elif is_wanted:
                flash(_("This resend was asked for already."), "info")
            else:
                flash(_("Nothing was resent: this delivery no longer counts as failed."), "info")
        except SendingRefusedError as error:
            flash(words.why_not(error), "bad")
        return redirect(url_for(".delivery", delivery=delivery), _SEE_OTHER)

    def _page(
        self, connection: Connection[Any], application: UUID | None, before: int | None
    ) -> ExhaustedPage:
        kafka = self.workshop.settings.kafka
        if application is None:
            return list_exhausted(connection, kafka, before, _PAGE)
        found: list[ExhaustedDelivery] = []
        for _look in range(_MOST_LOOKS):
            page = list_exhausted(connection, kafka, before, _LOOK)
            found.extend(one for one in page.deliveries if one.application_id == application)
            before = page.next_before
            if before is None or len(found) >= _PAGE:
                break
        return ExhaustedPage(found, before)


def _found(connection: Connection[Any], delivery_id: UUID) -> ExhaustedDelivery:
    try:
        return get_exhausted(connection, delivery_id)
    except DeliveryNotFoundError:
        abort(404)

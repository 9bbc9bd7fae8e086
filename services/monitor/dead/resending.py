"""Resending all failed deliveries of a period: one bulk resend for each application, and how far each is."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from flask_babel import ngettext
from psycopg import Connection

from services.monitor.access import note, signed_in
from services.monitor.dead import words
from services.monitor.dead.bulk_resends import Resending, find_resend, list_resends
from services.monitor.workshop import Workshop
from shared.console.requests import wants_part
from shared.domain.audit_log import Action, Details
from shared.domain.deliveries.bulk_resend import BulkResendSummary, resend_all_exhausted, stop_bulk_resend
from shared.platform.database.first_value import first_value
from shared.platform.uuids import uuid_in

_SEE_OTHER = 303
_UNPROCESSABLE = 422
_MOST_LISTED = 100
_MOST_NAMED = 5
_BACK = {name: timedelta(days=int(name.removesuffix("d"))) for name in words.PERIODS}
_USUAL = "3d"


@dataclass(frozen=True, slots=True)
class ResendPages:
    workshop: Workshop

    def choose_resend(self) -> ResponseReturnValue:
        return _form(None)

    def begin_resend(self) -> ResponseReturnValue:
        """What the form hides names the wish: a second click begins nothing more."""
        wish = uuid_in(request.form.get("wish", "")) or abort(_UNPROCESSABLE)
        back = _BACK.get(request.form.get("back", ""))
        if back is None:
            return _form(_("Choose one of these periods.")), _UNPROCESSABLE
        with self.workshop.database.transaction() as connection:
            until = _now(connection)
            outcome = resend_all_exhausted(connection, until - back, until, signed_in().actor, wish)
        _tell(outcome)
        return redirect(url_for(".resends"), _SEE_OTHER)

    def resends(self) -> ResponseReturnValue:
        with self.workshop.database.transaction() as connection:
            found = list_resends(connection, _MOST_LISTED)
        template = "dead/resends_part.html" if wants_part() else "dead/resends.html"
        return render_template(template, resends=found, words=words)

    def resend_progress(self, resend: UUID) -> ResponseReturnValue:
        with self.workshop.database.transaction() as connection:
            found = _found(connection, resend)
        template = "dead/resend_part.html" if wants_part() else "dead/resend.html"
        return render_template(template, resend=found, words=words)

    def stop_resend(self, resend: UUID) -> ResponseReturnValue:
        with self.workshop.database.transaction() as connection:
            application_id = _found(connection, resend).application_id
            is_new = stop_bulk_resend(connection, application_id, resend)
            if is_new:
                details: Details = {"resend": str(resend), "resent": _found(connection, resend).resent}
                note(connection, Action.RESENDING_STOPPED, application_id=application_id, details=details)
        if is_new:
            flash(_("Stopped. What was put in line before is still sent."), "good")
        else:
            flash(_("It had ended before."), "info")
        return redirect(url_for(".resend_progress", resend=resend), _SEE_OTHER)


def _form(error: str | None) -> str:
    back = request.values.get("back", _USUAL)
    return render_template(
        "dead/choose_resend.html",
        periods=words.PERIODS,
        back=back if back in _BACK else _USUAL,
        error=error,
        wish=uuid4(),
    )


def _tell(outcome: BulkResendSummary) -> None:
    if outcome.begun:
        flash(
            ngettext(
                "Failed deliveries of %(num)d application are being resent.",
                "Failed deliveries of %(num)d applications are being resent.",
                len(outcome.begun),
            ),
            "good",
        )
    if not outcome.is_all:
        flash(
            _(
                "There are more applications than could be begun with at once. Ask again to go on with the others."
            ),
            "bad",
        )
    elif not outcome.begun and not outcome.refused:
        flash(_("No delivery of this period has failed, or all have been resent."), "info")
    if outcome.refused:
        named = [one.application for one in outcome.refused[:_MOST_NAMED]]
        more = "…" if len(outcome.refused) > _MOST_NAMED else ""
        flash(
            _(
                "Not resent, because they have no webhook URL, are paused, or are being resent already: %(names)s",
                names=", ".join(named) + more,
            ),
            "bad",
        )


def _found(connection: Connection[Any], resend: UUID) -> Resending:
    return find_resend(connection, resend) or abort(404)


def _now(connection: Connection[Any]) -> datetime:
    now: datetime = first_value(connection.execute("select mizan_now()"))
    return now

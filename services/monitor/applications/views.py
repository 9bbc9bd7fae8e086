"""Pages about applications: the list, one application, and pausing or resuming its webhooks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from services.monitor.access import add_route, record_action
from services.monitor.applications.queries import (
    MAX_COUNTED_PER_ROW,
    MAX_SEARCH_LENGTH,
    find_application,
    list_applications,
)
from services.monitor.dependencies import Dependencies
from shared.domain.applications.errors import ApplicationNotFoundError
from shared.domain.attempts.notes import MAX_NOTE_LENGTH, MIN_NOTE_LENGTH, InvalidNoteError, clean_note
from shared.domain.audit_log import Action
from shared.domain.deliveries.pause import pause_webhooks, resume_webhooks
from shared.platform.settings import RETRY_STEPS
from shared.platform.uuids import parse_uuid

_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class ApplicationViews:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        text = request.args.get("search", "").replace("\0", "").strip()[:MAX_SEARCH_LENGTH]
        before = parse_uuid(request.args.get("before", ""))
        with self.dependencies.database.transaction() as connection:
            page = list_applications(connection, text, before)
        return render_template(
            "applications/list.html",
            applications=page.applications,
            max_counted=MAX_COUNTED_PER_ROW,
            search=text,
            newest_url=url_for(".listing", search=text or None) if before else None,
            older_url=url_for(".listing", search=text or None, before=page.before) if page.before else None,
        )

    def show(self, application: UUID) -> ResponseReturnValue:
        return self._page(application, "", None)

    def pause(self, application: UUID) -> ResponseReturnValue:
        done = _("Paused. Deliveries that fall due are kept until the webhooks are resumed.")
        unchanged = _("The webhooks were already paused. Nothing was changed.")
        return self._change(application, pause_webhooks, Action.WEBHOOKS_PAUSED, done, unchanged)

    def resume(self, application: UUID) -> ResponseReturnValue:
        done = _("Resumed. Deliveries that fell due during the pause are sent first.")
        unchanged = _("The webhooks were not paused. Nothing was changed.")
        return self._change(application, resume_webhooks, Action.WEBHOOKS_RESUMED, done, unchanged)

    def _change(
        self,
        application: UUID,
        change: Callable[[Connection[Any], UUID], bool],
        action: Action,
        done: str,
        unchanged: str,
    ) -> ResponseReturnValue:
        given = request.form.get("reason", "")
        try:
            reason = clean_note(given)
        except InvalidNoteError:
            error = _(
                "Write %(least)d to %(most)d characters for those who review this later.",
                least=MIN_NOTE_LENGTH,
                most=MAX_NOTE_LENGTH,
            )
            return self._page(application, given[: 2 * MAX_NOTE_LENGTH], error), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                is_new = change(connection, application)
                if is_new:
                    record_action(connection, action, application_id=application, details={"reason": reason})
        except ApplicationNotFoundError:
            abort(404)
        flash(done if is_new else unchanged, "good" if is_new else "info")
        return redirect(url_for(".show", application=application), _SEE_OTHER)

    def _page(self, application: UUID, reason: str, error: str | None) -> str:
        with self.dependencies.database.transaction() as connection:
            found = find_application(connection, application) or abort(404)
        return render_template(
            "applications/show.html", found=found, steps=RETRY_STEPS + 1, reason=reason, error=error
        )


_POST = ("POST",)


def create_applications_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("applications", __name__)
    views = ApplicationViews(dependencies)
    add_route(blueprint, "/applications", views.listing)
    add_route(blueprint, "/applications/<uuid:application>", views.show)
    add_route(blueprint, "/applications/<uuid:application>/pause", views.pause, _POST)
    add_route(blueprint, "/applications/<uuid:application>/resume", views.resume, _POST)
    return blueprint

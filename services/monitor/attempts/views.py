"""Pages about payment attempts that need an operator: the list, one attempt, a decision, a handled duplicate."""

from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.monitor.access import add_route, current_session
from services.monitor.attempts import labels
from services.monitor.attempts.forms import NOTHING_GIVEN, Given, read_decision, read_note, read_seen
from services.monitor.attempts.queries import find_attempt
from services.monitor.dependencies import Dependencies
from shared.domain.attempts.duplicates import list_open_duplicates, mark_handled
from shared.domain.attempts.operator_decision import apply_decision
from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.settlement import AttemptNotFoundError
from shared.domain.attempts.states import AttemptState
from shared.domain.attempts.undecided import list_undecided
from shared.platform.errors import RefusedError

_MOST_LISTED = 200
_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class AttemptPages:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            undecided = list_undecided(connection, _MOST_LISTED + 1)
            duplicates = list_open_duplicates(connection, _MOST_LISTED + 1)
        return render_template(
            "attempts/list.html",
            undecided=undecided[:_MOST_LISTED],
            more_undecided=len(undecided) > _MOST_LISTED,
            duplicates=duplicates[:_MOST_LISTED],
            more_duplicates=len(duplicates) > _MOST_LISTED,
            words=labels,
        )

    def show(self, attempt: UUID) -> ResponseReturnValue:
        return self._page(attempt, NOTHING_GIVEN)

    def decide(self, attempt: UUID) -> ResponseReturnValue:
        """The form carries how things stood when it was made: what was settled meanwhile stays as it is."""
        seen = read_seen(request.form) or abort(_UNPROCESSABLE)
        given = read_decision(request.form)
        if given.errors:
            return self._page(attempt, given), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                settled = apply_decision(connection, attempt, given.decision, current_session().actor, seen)
            flash(_said(settled), "good")
        except AttemptNotFoundError:
            abort(404)
        except RefusedError as error:
            flash(labels.why_not(error), "bad")
        return redirect(url_for(".show", attempt=attempt), _SEE_OTHER)

    def handle(self, attempt: UUID) -> ResponseReturnValue:
        given = read_note(request.form)
        if given.errors:
            return self._page(attempt, given), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                is_new = mark_handled(connection, attempt, given.values["note"], current_session().actor)
            if is_new:
                flash(_("Marked as handled. The merchant sees it too."), "good")
            else:
                flash(_("Somebody had marked it as handled before. Nothing was changed."), "info")
        except AttemptNotFoundError:
            abort(404)
        except RefusedError as error:
            flash(labels.why_not(error), "bad")
        return redirect(url_for(".show", attempt=attempt), _SEE_OTHER)

    def _page(self, attempt: UUID, given: Given) -> str:
        with self.dependencies.database.transaction() as connection:
            found = find_attempt(connection, attempt) or abort(404)
        return render_template(
            "attempts/show.html",
            attempt=found.attempt,
            siblings=found.siblings,
            events=found.events,
            given=given.values,
            errors=given.errors,
            words=labels,
        )


def _said(settled: SettlementResult) -> str:
    if settled.attempt is AttemptState.DUPLICATE:
        return str(_("Decided: it was paid, and it is a second payment. Settle it with the customer."))
    if settled.attempt is AttemptState.PAID:
        return str(_("Decided: it was paid. The merchant is told by webhook."))
    return str(_("Decided: it was not paid."))


_POST = ("POST",)


def attempts_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("attempts", __name__)
    pages = AttemptPages(dependencies)
    add_route(blueprint, "/attempts", pages.listing)
    add_route(blueprint, "/attempts/<uuid:attempt>", pages.show)
    add_route(blueprint, "/attempts/<uuid:attempt>/decide", pages.decide, _POST)
    add_route(blueprint, "/attempts/<uuid:attempt>/handled", pages.handle, _POST)
    return blueprint

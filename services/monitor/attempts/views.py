"""Pages about payment attempts that need an operator: the list, one attempt, a decision, a handled duplicate."""

from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.monitor.access import add_route, current_session
from services.monitor.attempts import labels
from services.monitor.attempts.forms import EMPTY_INPUT, FormInput, parse_decision, parse_note, parse_seen
from services.monitor.attempts.queries import find_attempt
from services.monitor.dependencies import Dependencies
from shared.domain.attempts.duplicates import list_open_duplicates, mark_handled
from shared.domain.attempts.operator_decision import apply_decision
from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.settlement import AttemptNotFoundError
from shared.domain.attempts.states import AttemptState
from shared.domain.attempts.undecided import list_undecided
from shared.platform.errors import RefusedError

_MAX_LISTED = 200
_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class AttemptViews:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            undecided = list_undecided(connection, _MAX_LISTED + 1)
            duplicates = list_open_duplicates(connection, _MAX_LISTED + 1)
        return render_template(
            "attempts/list.html",
            undecided=undecided[:_MAX_LISTED],
            more_undecided=len(undecided) > _MAX_LISTED,
            duplicates=duplicates[:_MAX_LISTED],
            more_duplicates=len(duplicates) > _MAX_LISTED,
            labels=labels,
        )

    def show(self, attempt: UUID) -> ResponseReturnValue:
        return self._page(attempt, EMPTY_INPUT)

    def decide(self, attempt: UUID) -> ResponseReturnValue:
        """Record the decision. The form carries the state it showed: an attempt that has changed since is kept."""
        seen = parse_seen(request.form) or abort(_UNPROCESSABLE)
        form_input = parse_decision(request.form)
        if form_input.errors:
            return self._page(attempt, form_input), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                settled = apply_decision(
                    connection, attempt, form_input.decision, current_session().actor, seen
                )
            flash(_describe_result(settled), "good")
        except AttemptNotFoundError:
            abort(404)
        except RefusedError as error:
            flash(labels.explain_refusal(error), "bad")
        return redirect(url_for(".show", attempt=attempt), _SEE_OTHER)

    def handle(self, attempt: UUID) -> ResponseReturnValue:
        form_input = parse_note(request.form)
        if form_input.errors:
            return self._page(attempt, form_input), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                is_new = mark_handled(connection, attempt, form_input.values["note"], current_session().actor)
            if is_new:
                flash(_("Marked as handled. The merchant sees it too."), "good")
            else:
                flash(_("It was already marked as handled. Nothing was changed."), "info")
        except AttemptNotFoundError:
            abort(404)
        except RefusedError as error:
            flash(labels.explain_refusal(error), "bad")
        return redirect(url_for(".show", attempt=attempt), _SEE_OTHER)

    def _page(self, attempt: UUID, form_input: FormInput) -> str:
        with self.dependencies.database.transaction() as connection:
            found = find_attempt(connection, attempt) or abort(404)
        return render_template(
            "attempts/show.html",
            attempt=found.attempt,
            related=found.related,
            events=found.events,
            given=form_input.values,
            errors=form_input.errors,
            labels=labels,
        )


def _describe_result(settled: SettlementResult) -> str:
    if settled.attempt is AttemptState.DUPLICATE:
        return str(_("Decided: it was paid, and it is a duplicate payment. Refund the customer."))
    if settled.attempt is AttemptState.PAID:
        return str(_("Decided: it was paid. The merchant is notified by webhook."))
    return str(_("Decided: it was not paid."))


_POST = ("POST",)


def create_attempts_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("attempts", __name__)
    views = AttemptViews(dependencies)
    add_route(blueprint, "/attempts", views.listing)
    add_route(blueprint, "/attempts/<uuid:attempt>", views.show)
    add_route(blueprint, "/attempts/<uuid:attempt>/decide", views.decide, _POST)
    add_route(blueprint, "/attempts/<uuid:attempt>/handled", views.handle, _POST)
    return blueprint

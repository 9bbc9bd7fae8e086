"""Pages about payment attempts that need an operator: the list, one attempt, its decision and approval, a duplicate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from services.monitor.access import add_route, current_session
from services.monitor.attempts import labels
from services.monitor.attempts.forms import EMPTY_INPUT, FormInput, parse_decision, parse_note, parse_seen
from services.monitor.attempts.queries import find_attempt
from services.monitor.dependencies import Dependencies
from shared.console.payment_labels import ATTEMPT_STATES
from shared.console.requests import wants_part
from shared.domain.attempts.decision_proposals import (
    OutdatedProposal,
    ProposalNotFoundError,
    approve_proposal,
    list_waiting,
    reject_proposal,
)
from shared.domain.attempts.duplicates import list_open_duplicates, mark_handled
from shared.domain.attempts.operator_decision import ProposedDecision, decide_attempt
from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.settlement import AttemptNotFoundError
from shared.domain.attempts.states import AttemptState
from shared.domain.attempts.status_inquiries import ask_provider
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
            waiting = list_waiting(connection, _MAX_LISTED + 1)
            undecided = list_undecided(connection, _MAX_LISTED + 1)
            duplicates = list_open_duplicates(connection, _MAX_LISTED + 1)
        return render_template(
            "attempts/list.html",
            waiting=waiting[:_MAX_LISTED],
            more_waiting=len(waiting) > _MAX_LISTED,
            undecided=undecided[:_MAX_LISTED],
            more_undecided=len(undecided) > _MAX_LISTED,
            duplicates=duplicates[:_MAX_LISTED],
            more_duplicates=len(duplicates) > _MAX_LISTED,
            labels=labels,
        )

    def show(self, attempt: UUID) -> ResponseReturnValue:
        return self._page(attempt, EMPTY_INPUT)

    def ask(self, attempt: UUID) -> ResponseReturnValue:
        """Have the verifier ask the provider. The page shows the answer once it is recorded."""

        def act(connection: Connection[Any]) -> tuple[str, str]:
            ask_provider(connection, attempt, current_session().actor)
            return _("The provider is being asked. The answer appears here."), "info"

        return self._act(attempt, act)

    def decide(self, attempt: UUID) -> ResponseReturnValue:
        """Record the decision. The form carries the state it showed: an attempt that has changed since is kept."""
        seen = parse_seen(request.form) or abort(_UNPROCESSABLE)
        form_input = parse_decision(request.form)
        if form_input.errors:
            return self._page(attempt, form_input), _UNPROCESSABLE

        def act(connection: Connection[Any]) -> tuple[str, str]:
            decided = decide_attempt(
                connection,
                attempt,
                form_input.decision,
                current_session().actor,
                snapshot=seen,
                approval_above=self.dependencies.settings.decision_approval_above,
            )
            if isinstance(decided, ProposedDecision):
                return _("Proposed. Another operator has to approve it before anything is changed."), "info"
            return _describe_result(decided), "good"

        return self._act(attempt, act)

    def approve(self, attempt: UUID, proposal: UUID) -> ResponseReturnValue:
        def act(connection: Connection[Any]) -> tuple[str, str]:
            approved = approve_proposal(connection, attempt, proposal, current_session().actor)
            if isinstance(approved, OutdatedProposal):
                state = ATTEMPT_STATES[approved.state]
                text = _(
                    "Nothing was approved: the attempt has changed since it was proposed. The state is: %(state)s.",
                    state=state,
                )
                return text, "bad"
            return _describe_result(approved), "good"

        return self._act(attempt, act)

    def reject(self, attempt: UUID, proposal: UUID) -> ResponseReturnValue:
        def act(connection: Connection[Any]) -> tuple[str, str]:
            reject_proposal(connection, attempt, proposal, current_session().actor)
            return _("Rejected. The attempt was not changed."), "good"

        return self._act(attempt, act)

    def handle(self, attempt: UUID) -> ResponseReturnValue:
        form_input = parse_note(request.form)
        if form_input.errors:
            return self._page(attempt, form_input), _UNPROCESSABLE

        def act(connection: Connection[Any]) -> tuple[str, str]:
            if mark_handled(connection, attempt, form_input.values["note"], current_session().actor):
                return _("Marked as handled. The merchant sees it too."), "good"
            return _("It was already marked as handled. Nothing was changed."), "info"

        return self._act(attempt, act)

    def _act(self, attempt: UUID, act: Callable[[Connection[Any]], tuple[str, str]]) -> ResponseReturnValue:
        """Run `act` in a transaction, and go back to the attempt with the message and its kind, or with the refusal."""
        try:
            with self.dependencies.database.transaction() as connection:
                message = act(connection)
            flash(*message)
        except (AttemptNotFoundError, ProposalNotFoundError):
            abort(404)
        except RefusedError as error:
            flash(labels.explain_refusal(error), "bad")
        return redirect(url_for(".show", attempt=attempt), _SEE_OTHER)

    def _page(self, attempt: UUID, form_input: FormInput) -> str:
        with self.dependencies.database.transaction() as connection:
            found = find_attempt(connection, attempt) or abort(404)
        return render_template(
            "attempts/inquiry_partial.html" if wants_part() else "attempts/show.html",
            found=found,
            approval_above=self.dependencies.settings.decision_approval_above,
            operator_id=current_session().operator.id,
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
    add_route(blueprint, "/attempts/<uuid:attempt>/ask", views.ask, _POST)
    add_route(blueprint, "/attempts/<uuid:attempt>/decide", views.decide, _POST)
    add_route(blueprint, "/attempts/<uuid:attempt>/proposals/<uuid:proposal>/approve", views.approve, _POST)
    add_route(blueprint, "/attempts/<uuid:attempt>/proposals/<uuid:proposal>/reject", views.reject, _POST)
    add_route(blueprint, "/attempts/<uuid:attempt>/handled", views.handle, _POST)
    return blueprint

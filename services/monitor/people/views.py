"""Pages for operators themselves: signing in and out, their account, and the audit log."""

from dataclasses import dataclass

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from services.monitor.access import SignedIn, add_route, note, signed_in
from services.monitor.dependencies import Workshop
from shared.console.account import AccountPages
from shared.console.audit_labels import ACTIONS, DETAILS
from shared.console.cookies import account_of, forget, remember, remember_account
from shared.console.requests import address, wanted_path
from shared.console.sign_in_form import empty_form, what_was_entered
from shared.domain.accounts.operators import (
    Operator,
    find_operator,
    is_operator_unchanged,
    set_operator_password,
)
from shared.domain.accounts.passwords import Prover, is_outdated
from shared.domain.accounts.sessions import begin_session, end_session
from shared.domain.accounts.throttles import SlowDownError
from shared.domain.applications.registry import names_of
from shared.domain.audit_log import Action, list_operators_entries, record
from shared.platform.tokens import hash_of
from shared.platform.uuids import uuid_in

_SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class SignInPages:
    workshop: Workshop

    def sign_in(self) -> ResponseReturnValue:
        return empty_form()

    def check(self) -> ResponseReturnValue:
        entered = what_was_entered()
        try:
            tried = Prover(self.workshop.database, self.workshop.throttles).prove(
                account_of(entered.email),
                address(),
                lambda cursor: [found] if (found := find_operator(cursor, entered.email)) else [],
                entered.password,
            )
        except SlowDownError:
            return entered.slow_down()
        if tried.proven and self._let_in(tried.proven[0], entered.password):
            return redirect(wanted_path() or url_for("overview.show"), _SEE_OTHER)
        return entered.not_right()

    def _let_in(self, operator: Operator, password: str) -> bool:
        """Whether the password is theirs still."""
        with self.workshop.database.transaction() as connection:
            account = account_of(operator.email)
            self.workshop.throttles.succeeded(connection, account, address(), is_forgiven=True)
            if not is_operator_unchanged(connection, operator):
                return False
            if is_outdated(operator.password_hash):
                set_operator_password(connection, operator.id, password)
            browser = request.headers.get("User-Agent", "")
            token = begin_session(connection, operator.id, address(), browser)
            who = SignedIn(operator, hash_of(token), address())
            record(connection, who.actor, Action.SIGNED_IN)
        remember_account(operator.email)
        remember(token)
        return True

    def sign_out(self) -> ResponseReturnValue:
        who = signed_in()
        with self.workshop.database.transaction() as connection:
            end_session(connection, who.operator.id, who.session_hash)
            note(connection, Action.SIGNED_OUT)
        forget()
        return redirect(url_for("people.sign_in"), _SEE_OTHER)


_PAGE = 50


@dataclass(frozen=True, slots=True)
class AuditPages:
    workshop: Workshop

    def audit(self) -> ResponseReturnValue:
        before = uuid_in(request.args.get("before", ""))
        with self.workshop.database.transaction() as connection:
            entries = list_operators_entries(connection, before=before, most=_PAGE + 1)
            shown = entries[:_PAGE]
            concerned = {entry.application_id for entry in shown if entry.application_id is not None}
            applications = names_of(connection, concerned)
        older = url_for("people.audit", before=shown[-1].id) if len(entries) > _PAGE else None
        return render_template(
            "audit.html",
            entries=shown,
            actions=ACTIONS,
            detail_names=DETAILS,
            applications=applications,
            newest_url=url_for("people.audit") if before else None,
            older_url=older,
        )


_POST = ("POST",)


def people_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("people", __name__)
    signing = SignInPages(workshop)
    add_route(blueprint, "/sign-in", signing.sign_in, is_open=True)
    add_route(blueprint, "/sign-in", signing.check, _POST, is_open=True)
    add_route(blueprint, "/sign-out", signing.sign_out, _POST)
    account = AccountPages(
        workshop.database, workshop.throttles, lambda: signed_in().holder, set_operator_password, note
    )
    add_route(blueprint, "/account", account.account)
    add_route(blueprint, "/account/password", account.change_password, _POST)
    add_route(blueprint, "/account/sessions", account.end_session, _POST)
    add_route(blueprint, "/log", AuditPages(workshop).audit)
    return blueprint

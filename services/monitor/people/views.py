"""Pages for operators themselves: signing in and out, their account, and the audit log."""

from dataclasses import dataclass, replace
from typing import Any

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from psycopg import Connection

from services.monitor.access import OperatorSession, add_route, current_session, record_action
from services.monitor.dependencies import SERVICE, Dependencies
from shared.console.account import AccountPages
from shared.console.audit_log import PAGE_SIZE, render_audit_log
from shared.console.cookies import (
    clear_session_token,
    known_browser,
    remember_known_account,
    set_session_token,
)
from shared.console.guard import Access, SignedInAccount
from shared.console.requests import client_address, next_path
from shared.console.sign_in_form import read_sign_in_form, show_sign_in_form
from shared.domain.accounts.failed_sign_ins import (
    FailureReason,
    SignInFailure,
    list_operators_failed_sign_ins,
    record_failed_sign_in,
)
from shared.domain.accounts.operators import (
    Operator,
    change_operator_password,
    find_operator_by_email,
    find_removed_operator,
    lock_unchanged_operator_password,
    set_operator_password,
)
from shared.domain.accounts.passwords import PasswordVerifier, needs_rehash
from shared.domain.accounts.sessions import end_session, start_session
from shared.domain.accounts.throttles import CountedAttempt, SignInThrottledError
from shared.domain.applications.registry import application_names
from shared.domain.audit_log import Action, add_audit_entry, list_operator_entries
from shared.platform.database.pool import Database
from shared.platform.tokens import hash_token
from shared.platform.uuids import parse_uuid

_SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class SignInViews:
    dependencies: Dependencies

    def sign_in(self) -> ResponseReturnValue:
        return show_sign_in_form()

    def check(self) -> ResponseReturnValue:
        entered = read_sign_in_form()
        with self.dependencies.database.cursor() as cursor:
            found = find_operator_by_email(cursor, entered.email)
        try:
            tried = PasswordVerifier(self.dependencies.database, self.dependencies.throttles).verify(
                entered.email, found, client_address(), known_browser(), entered.password
            )
        except SignInThrottledError as throttled:
            person = found.id if found and not throttled.is_address else None
            self._record_failure(SignInFailure(FailureReason.THROTTLED, person))
            return entered.show_throttled()
        if tried.verified and self._start_session(tried.attempt, tried.verified, entered.password):
            return redirect(next_path() or url_for("overview.show"), _SEE_OTHER)
        self._record_failure(_explain_failure(self.dependencies.database, found, entered.email))
        return entered.show_wrong_password()

    def _record_failure(self, failure: SignInFailure) -> None:
        record_failed_sign_in(self.dependencies.database, SERVICE, client_address(), [failure])

    def _start_session(self, attempt: CountedAttempt, operator: Operator, password: str) -> bool:
        """Sign the operator in. Return False if the password was changed in the meantime."""
        with self.dependencies.database.transaction() as connection:
            self.dependencies.throttles.record_success(connection, attempt)
            if not lock_unchanged_operator_password(connection, operator):
                return False
            if needs_rehash(operator.password_hash):
                hashed = set_operator_password(connection, operator.id, password)
                operator = replace(operator, password_hash=hashed)
            browser = request.headers.get("User-Agent", "")
            token = start_session(connection, operator.id, client_address(), browser)
            who = OperatorSession(operator, hash_token(token), client_address())
            add_audit_entry(connection, who.actor, Action.SIGNED_IN)
        remember_known_account(operator)
        set_session_token(token)
        return True

    def sign_out(self) -> ResponseReturnValue:
        who = current_session()
        with self.dependencies.database.transaction() as connection:
            end_session(connection, who.operator.id, who.session_hash)
            record_action(connection, Action.SIGNED_OUT)
        clear_session_token()
        return redirect(url_for("people.sign_in"), _SEE_OTHER)


def _explain_failure(database: Database, found: Operator | None, email: str) -> SignInFailure:
    if found is not None:
        return SignInFailure(FailureReason.WRONG_PASSWORD, found.id)
    with database.cursor() as cursor:
        removed = find_removed_operator(cursor, email)
    return SignInFailure(FailureReason.REMOVED if removed else FailureReason.UNKNOWN_ACCOUNT, removed)


@dataclass(frozen=True, slots=True)
class AuditLogViews:
    dependencies: Dependencies

    def audit(self) -> ResponseReturnValue:
        before = parse_uuid(request.args.get("before", ""))
        with self.dependencies.database.transaction() as connection:
            entries = list_operator_entries(connection, before=before, limit=PAGE_SIZE + 1)
            entries += list_operators_failed_sign_ins(connection, before=before, limit=PAGE_SIZE + 1)
            application_ids = {entry.application_id for entry in entries if entry.application_id is not None}
            names = application_names(connection, application_ids)
        return render_audit_log(entries, names, is_first_page=before is None)


_POST = ("POST",)


def _change_password(connection: Connection[Any], account: SignedInAccount, password: str) -> Operator | None:
    return change_operator_password(connection, current_session().operator, password, account.session_hash)


def create_people_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("people", __name__)
    signing = SignInViews(dependencies)
    add_route(blueprint, "/sign-in", signing.sign_in, requires=Access.PUBLIC)
    add_route(blueprint, "/sign-in", signing.check, _POST, requires=Access.PUBLIC)
    add_route(blueprint, "/sign-out", signing.sign_out, _POST)
    account = AccountPages(
        dependencies.database,
        dependencies.throttles,
        lambda: current_session().account,
        _change_password,
        record_action,
    )
    add_route(blueprint, "/account", account.account)
    add_route(blueprint, "/account/password", account.change_password, _POST)
    add_route(blueprint, "/account/sessions", account.end_session, _POST)
    add_route(blueprint, "/log", AuditLogViews(dependencies).audit)
    return blueprint

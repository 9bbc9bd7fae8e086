"""Signing in and out. Nothing tells whether an email address is known: not the words, not the time, not the waiting."""

from dataclasses import dataclass

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue

from services.monitor.access import SignedIn, note, signed_in
from services.monitor.workshop import Workshop
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
from shared.domain.audit_log import Action, record
from shared.platform.tokens import hash_of

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

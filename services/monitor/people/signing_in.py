"""Signing in and out. Nothing tells whether an email address is known: not the words, not the time, not the waiting."""

from dataclasses import dataclass

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.monitor.access import SignedIn, note, signed_in
from services.monitor.workshop import Workshop
from shared.audit import Action, record
from shared.credential_formats import hash_of
from shared.pages.asking import address, wanted_path
from shared.pages.known_browser import account_of, remember_account
from shared.pages.token import forget, remember
from shared.people.members import EmailNotAllowedError, check_email
from shared.people.operators import (
    Operator,
    find_operator,
    is_operator_unchanged,
    set_operator_password,
)
from shared.people.passwords import is_outdated
from shared.people.proving import Prover
from shared.people.sessions import begin_session, end_session
from shared.people.throttles import SlowDownError

_SEE_OTHER = 303
_UNPROCESSABLE = 422
_TOO_MANY = 429
_LONGEST_EMAIL = 254
_LONGEST_PASSWORD = 1000


@dataclass(frozen=True, slots=True)
class SignInPages:
    workshop: Workshop

    def sign_in(self) -> ResponseReturnValue:
        return _form("", None)

    def check(self) -> ResponseReturnValue:
        shown = request.form.get("email", "")[:_LONGEST_EMAIL]
        password = request.form.get("password", "")[:_LONGEST_PASSWORD]
        try:
            email = check_email(request.form.get("email", ""))
        except EmailNotAllowedError:
            email = ""  # nobody's
        prover = Prover(self.workshop.database, self.workshop.throttles)
        try:
            tried = prover.prove(
                account_of(email),
                address(),
                lambda cursor: [found] if (found := find_operator(cursor, email)) else [],
                password,
            )
        except SlowDownError:
            return _form(shown, _("Too many sign-ins have failed. Wait a minute and try again.")), _TOO_MANY
        if tried.proven and self._let_in(tried.proven[0], password):
            return redirect(wanted_path() or url_for("overview.show"), _SEE_OTHER)
        return _form(shown, _("Email or password is not right.")), _UNPROCESSABLE

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


def _form(email: str, error: str | None) -> str:
    return render_template("people/sign_in.html", email=email, error=error, next=wanted_path())

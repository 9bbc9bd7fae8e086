"""The account page: change one's own password, see and end one's sessions."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from shared.console.browsers import browser_label
from shared.console.cookies import clear_session_token, known_browser, remember_known_account
from shared.console.guard import SignedInAccount
from shared.domain.accounts.password_rules import (
    MAX_LENGTH,
    MIN_LENGTH,
    PasswordFlaw,
    PasswordNotAllowedError,
    check_password,
)
from shared.domain.accounts.passwords import HasPassword, PasswordVerifier
from shared.domain.accounts.sessions import (
    end_other_sessions,
    end_session,
    list_sessions,
    record_password_entry,
)
from shared.domain.accounts.throttles import SignInThrottle, SignInThrottledError
from shared.domain.audit_log import Action, AuditDetails
from shared.platform.database.pool import Database

_SEE_OTHER = 303
_UNPROCESSABLE = 422


def password_error(flaw: PasswordFlaw) -> str:
    """Return the sentence that says why a password was refused, and what to choose instead."""
    sentences: dict[PasswordFlaw, str] = {
        PasswordFlaw.LENGTH: _(
            "Choose a password of %(shortest)d to %(longest)d characters.",
            shortest=MIN_LENGTH,
            longest=MAX_LENGTH,
        ),
        PasswordFlaw.PERSONAL: _(
            "Choose a password without your email address and without the name Mizan in it."
        ),
        PasswordFlaw.COMMON: _(
            "Many people use this password or one like it. "
            "Choose one that is hard to guess, such as a few words in a row."
        ),
    }
    return sentences[flaw]


class RecordAction(Protocol):
    def __call__(
        self, connection: Connection[Any], action: Action, *, details: AuditDetails | None = None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class AccountPages:
    """Expects the endpoints `people.account`, `people.change_password`, `people.end_session` and `people.sign_in`."""

    database: Database
    throttles: SignInThrottle
    current_account: Callable[[], SignedInAccount]
    set_password: Callable[[Connection[Any], SignedInAccount, str], HasPassword | None]
    """Ends all other sessions. Returns None if the password is no longer that of the account."""
    record_action: RecordAction

    def account(self, errors: dict[str, str] | None = None) -> str:
        account = self.current_account()
        with self.database.transaction() as connection:
            sessions = list_sessions(connection, account.id)
        return render_template(
            "people/account.html",
            sessions=sessions,
            current=account.session_hash,
            browser_label=browser_label,
            errors=errors or {},
        )

    def change_password(self) -> ResponseReturnValue:
        account = self.current_account()
        errors = self._password_errors(account)
        if errors:
            return self.account(errors), _UNPROCESSABLE
        with self.database.transaction() as connection:
            changed = self.set_password(connection, account, request.form["new_password"])
            if changed is not None:
                record_password_entry(connection, account.session_hash)
                self.record_action(connection, Action.PASSWORD_CHANGED)
        if changed is None:
            return self.account({"current_password": _("This is not your password.")}), _UNPROCESSABLE
        remember_known_account(changed)
        flash(_("Your password was changed. All your other sessions have ended."), "good")
        return redirect(url_for("people.account"), _SEE_OTHER)

    def end_session(self) -> ResponseReturnValue:
        """End the session whose hash the form names, or all other sessions."""
        account = self.current_account()
        wanted = request.form.get("session", "")
        with self.database.transaction() as connection:
            if wanted == "others":
                ended = end_other_sessions(connection, account.id, account.session_hash)
            else:
                ended = int(end_session(connection, account.id, _hash_in(wanted)))
            if ended:
                self.record_action(connection, Action.SESSION_ENDED, details={"sessions": ended})
        if hmac.compare_digest(_hash_in(wanted), account.session_hash):
            clear_session_token()
            return redirect(url_for("people.sign_in"), _SEE_OTHER)
        if ended:
            flash(_("The session was ended."), "good")
        return redirect(url_for("people.account"), _SEE_OTHER)

    def _password_errors(self, account: SignedInAccount) -> dict[str, str]:
        current = request.form.get("current_password", "")[: 5 * MAX_LENGTH]
        # The counters are those of the sign-in: nobody has more guesses by using several forms. They are counted by
        # browser, so who uses a stolen session does not keep the owner from changing the password in another browser.
        try:
            tried = PasswordVerifier(self.database, self.throttles).verify(
                account.email, account.holder, account.address, known_browser(), current
            )
        except SignInThrottledError:
            return {"current_password": _("Too many wrong passwords. Wait a minute and try again.")}
        if tried.verified is None:
            return {"current_password": _("This is not your password.")}
        with self.database.transaction() as connection:
            self.throttles.record_success(connection, tried.attempt)
        try:
            check_password(request.form.get("new_password", ""), account.email)
        except PasswordNotAllowedError as refused:
            return {"new_password": password_error(refused.flaw)}
        return {}


def _hash_in(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""

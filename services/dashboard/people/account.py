"""One's own account: the password, and where one is signed in."""

import hmac
from dataclasses import dataclass

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import forget, note, signed_in
from services.dashboard.people.known_browser import account_of
from services.dashboard.workshop import Workshop
from shared.audit import Action
from shared.people.members import set_password
from shared.people.passwords import (
    LONGEST,
    SHORTEST,
    PasswordNotAllowedError,
    check_password,
    matching,
)
from shared.people.sessions import end_other_sessions, end_session, list_sessions
from shared.people.throttles import SlowDownError

_SEE_OTHER = 303
_UNPROCESSABLE = 422


def password_trouble() -> str:
    sentence: str = _(
        "Choose a password of %(shortest)d to %(longest)d characters that is hard to guess, without your name in it.",
        shortest=SHORTEST,
        longest=LONGEST,
    )
    return sentence


@dataclass(frozen=True, slots=True)
class AccountPages:
    workshop: Workshop

    def account(self, errors: dict[str, str] | None = None) -> str:
        who = signed_in()
        with self.workshop.database.transaction() as connection:
            sessions = list_sessions(connection, who.member.id)
        return render_template(
            "people/account.html", sessions=sessions, current=who.session_hash, errors=errors or {}
        )

    def change_password(self) -> ResponseReturnValue:
        who = signed_in()
        errors = self._password_errors()
        if errors:
            return self.account(errors), _UNPROCESSABLE
        with self.workshop.database.transaction() as connection:
            set_password(connection, who.member.id, request.form["new_password"])
            end_other_sessions(connection, who.member.id, who.session_hash)
            note(connection, Action.PASSWORD_CHANGED)
        flash(_("Your password was changed. All your other sessions have ended."), "good")
        return redirect(url_for("people.account"), _SEE_OTHER)

    def end_session(self) -> ResponseReturnValue:
        """One, by its hash; or all but this one."""
        who = signed_in()
        wanted = request.form.get("session", "")
        with self.workshop.database.transaction() as connection:
            if wanted == "others":
                ended = end_other_sessions(connection, who.member.id, who.session_hash)
            else:
                ended = int(end_session(connection, who.member.id, _hash_in(wanted)))
            if ended:
                note(connection, Action.SESSION_ENDED, details={"sessions": ended})
        if hmac.compare_digest(_hash_in(wanted), who.session_hash):
            forget()
            return redirect(url_for("people.sign_in"), _SEE_OTHER)
        if ended:
            flash(_("The session was ended."), "good")
        return redirect(url_for("people.account"), _SEE_OTHER)

    def _password_errors(self) -> dict[str, str]:
        who = signed_in()
        try:
            with self.workshop.database.transaction() as connection:
                self.workshop.throttles.count(connection, account_of(who.member.email), who.address)
        except SlowDownError:
            return {"current_password": _("Too many wrong passwords. Wait a minute and try again.")}
        current = request.form.get("current_password", "")[: 5 * LONGEST]
        if not matching([who.member.password_hash or ""], current):
            return {"current_password": _("This is not your password.")}
        with self.workshop.database.transaction() as connection:
            account = account_of(who.member.email)
            self.workshop.throttles.succeeded(connection, account, who.address, is_forgiven=False)
        try:
            check_password(request.form.get("new_password", ""), who.member.email)
        except PasswordNotAllowedError:
            return {"new_password": password_trouble()}
        return {}


def _hash_in(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""

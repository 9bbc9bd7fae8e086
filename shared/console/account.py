"""One's own account: the password, and where one is signed in."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from shared.console.cookies import account_of, forget
from shared.domain.accounts.passwords import (
    LONGEST,
    SHORTEST,
    PasswordNotAllowedError,
    Prover,
    check_password,
    matching,
)
from shared.domain.accounts.sessions import end_other_sessions, end_session, list_sessions
from shared.domain.accounts.throttles import SlowDownError, Throttles
from shared.domain.audit_log import Action, Details
from shared.platform.database.pool import Database

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
class Holder:
    """Whose account it is, and the session that asks."""

    id: UUID
    email: str
    password_hash: str
    session_hash: bytes
    address: str


class Note(Protocol):
    def __call__(
        self, connection: Connection[Any], action: Action, *, details: Details | None = None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class AccountPages:
    """The routes are `people.account`, `people.change_password`, `people.end_session` and `people.sign_in`."""

    database: Database
    throttles: Throttles
    holder: Callable[[], Holder]
    set_password: Callable[[Connection[Any], UUID, str], None]
    note: Note

    def account(self, errors: dict[str, str] | None = None) -> str:
        who = self.holder()
        with self.database.transaction() as connection:
            sessions = list_sessions(connection, who.id)
        return render_template(
            "people/account.html",
            holder=who,
            sessions=sessions,
            current=who.session_hash,
            errors=errors or {},
        )

    def change_password(self) -> ResponseReturnValue:
        who = self.holder()
        errors = self._password_errors(who)
        if errors:
            return self.account(errors), _UNPROCESSABLE
        with self.database.transaction() as connection:
            self.set_password(connection, who.id, request.form["new_password"])
            end_other_sessions(connection, who.id, who.session_hash)
            self.note(connection, Action.PASSWORD_CHANGED)
        flash(_("Your password was changed. All your other sessions have ended."), "good")
        return redirect(url_for("people.account"), _SEE_OTHER)

    def end_session(self) -> ResponseReturnValue:
        """One, by its hash; or all but this one."""
        who = self.holder()
        wanted = request.form.get("session", "")
        with self.database.transaction() as connection:
            if wanted == "others":
                ended = end_other_sessions(connection, who.id, who.session_hash)
            else:
                ended = int(end_session(connection, who.id, _hash_in(wanted)))
            if ended:
                self.note(connection, Action.SESSION_ENDED, details={"sessions": ended})
        if hmac.compare_digest(_hash_in(wanted), who.session_hash):
            forget()
            return redirect(url_for("people.sign_in"), _SEE_OTHER)
        if ended:
            flash(_("The session was ended."), "good")
        return redirect(url_for("people.account"), _SEE_OTHER)

    def _password_errors(self, who: Holder) -> dict[str, str]:
        account = account_of(who.email)
        try:
            Prover(self.database, self.throttles).count(account, who.address)
        except SlowDownError:
            return {"current_password": _("Too many wrong passwords. Wait a minute and try again.")}
        current = request.form.get("current_password", "")[: 5 * LONGEST]
        if not matching([who.password_hash], current):
            return {"current_password": _("This is not your password.")}
        with self.database.transaction() as connection:
            self.throttles.succeeded(connection, account, who.address, is_forgiven=False)
        try:
            check_password(request.form.get("new_password", ""), who.email)
        except PasswordNotAllowedError:
            return {"new_password": password_trouble()}
        return {}


def _hash_in(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""

"""Signing in and out. Nothing tells whether an email address is known: not the words, not the time, not the waiting."""

import hashlib
from dataclasses import dataclass
from time import time
from typing import Any
from uuid import UUID

from flask import redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection

from services.dashboard.access import note, signed_in
from services.dashboard.workshop import Workshop
from shared.audit import Action, Actor, record
from shared.pages.asking import address, wanted_path
from shared.pages.known_browser import account_of, remember_account
from shared.pages.token import forget, remember
from shared.people.members import (
    EmailNotAllowedError,
    Member,
    check_email,
    find_by_email,
    find_member,
    is_unchanged,
    set_password,
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
_CHOICE = "choice"
"""In the browser's cookie, which nobody can forge: as whom the person may sign in, having given their password."""
_CHOICE_GOOD_FOR_S = 300


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
        try:
            tried = self._prover.prove(
                account_of(email), address(), lambda cursor: find_by_email(cursor, email), password
            )
        except SlowDownError:
            return _form(shown, _("Too many sign-ins have failed. Wait a minute and try again.")), _TOO_MANY
        if not tried.proven:
            return _form(shown, _("Email or password is not right.")), _UNPROCESSABLE
        is_forgiven = len(tried.proven) == len(tried.known)
        return self._let_in(email, password, list(tried.proven), is_forgiven=is_forgiven)

    @property
    def _prover(self) -> Prover:
        return Prover(self.workshop.database, self.workshop.throttles)

    def _let_in(
        self, email: str, password: str, proven: list[Member], *, is_forgiven: bool
    ) -> ResponseReturnValue:
        """`is_forgiven`: nobody else has this address elsewhere, whose account could be guessed at meanwhile."""
        with self.workshop.database.transaction() as connection:
            account = account_of(email)
            self.workshop.throttles.succeeded(connection, account, address(), is_forgiven=is_forgiven)
            proven = [member for member in proven if is_unchanged(connection, member)]
            if not proven:
                return _form(email, _("Email or password is not right.")), _UNPROCESSABLE
            for member in proven:
                if is_outdated(member.password_hash or ""):
                    set_password(connection, member.id, password)
            if len(proven) == 1:
                return _begin(connection, proven[0])
        session[_CHOICE] = {
            "members": {str(member.id): _fingerprint(member) for member in proven},
            "at": int(time()),
        }
        return render_template("people/choose_merchant.html", members=proven, next=wanted_path())

    def choose(self) -> ResponseReturnValue:
        """One person, several merchants."""
        choice = session.pop(_CHOICE, {"members": {}, "at": 0})
        chosen = request.form.get("member", "")
        if chosen in choice["members"] and time() - choice["at"] <= _CHOICE_GOOD_FOR_S:
            with self.workshop.database.transaction() as connection:
                member = find_member(connection, UUID(chosen))
                if member is not None and _fingerprint(member) == choice["members"][chosen]:
                    return _begin(connection, member)
        return redirect(url_for("people.sign_in"), _SEE_OTHER)

    def sign_out(self) -> ResponseReturnValue:
        who = signed_in()
        with self.workshop.database.transaction() as connection:
            end_session(connection, who.member.id, who.session_hash)
            note(connection, Action.SIGNED_OUT)
        forget()
        return redirect(url_for("people.sign_in"), _SEE_OTHER)


def begin_as(connection: Connection[Any], member_id: UUID, merchant_id: UUID, email: str) -> None:
    """This browser is signed in as this member from now on."""
    token = begin_session(connection, member_id, address(), request.headers.get("User-Agent", ""))
    record(connection, Actor(email, member_id, address()), Action.SIGNED_IN, merchant_id=merchant_id)
    remember_account(email)
    remember(token)


def _begin(connection: Connection[Any], member: Member) -> ResponseReturnValue:
    begin_as(connection, member.id, member.merchant_id, member.email)
    return redirect(wanted_path() or url_for("applications.listing"), _SEE_OTHER)


def _fingerprint(member: Member) -> str:
    """Of the password that was given: a choice is worth nothing once that was changed."""
    return hashlib.sha256(f"{member.id} {member.password_hash}".encode()).hexdigest()[:32]


def _form(email: str, error: str | None) -> str:
    return render_template("people/sign_in.html", email=email, error=error, next=wanted_path())

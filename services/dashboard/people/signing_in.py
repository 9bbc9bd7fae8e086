"""Signing in and out. Nothing tells whether an email address is known: not the words, not the time, not the waiting."""

import hashlib
from dataclasses import dataclass
from time import time
from typing import Any
from uuid import UUID

from flask import redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from psycopg import Connection

from services.dashboard.access import current_session, record_action
from services.dashboard.dependencies import Dependencies
from shared.console.cookies import (
    clear_session_token,
    remember_known_account,
    set_session_token,
    throttle_key,
)
from shared.console.requests import client_address, next_path
from shared.console.sign_in_form import SubmittedSignIn, read_sign_in_form, show_sign_in_form
from shared.domain.accounts.members import (
    Member,
    find_member,
    find_members_by_email,
    lock_unchanged_password,
    set_password,
)
from shared.domain.accounts.passwords import PasswordVerifier, needs_rehash
from shared.domain.accounts.sessions import end_session, start_session
from shared.domain.accounts.throttles import SignInThrottledError
from shared.domain.audit_log import Action, Actor, add_audit_entry

_SEE_OTHER = 303
_CHOICE = "choice"
"""In the browser's cookie, which nobody can forge: as whom the person may sign in, having given their password."""
_CHOICE_GOOD_FOR_S = 300


@dataclass(frozen=True, slots=True)
class SignInPages:
    dependencies: Dependencies

    def sign_in(self) -> ResponseReturnValue:
        return show_sign_in_form()

    def check(self) -> ResponseReturnValue:
        entered = read_sign_in_form()
        email = entered.email
        try:
            tried = self._verifier.verify(
                throttle_key(email),
                client_address(),
                lambda cursor: find_members_by_email(cursor, email),
                entered.password,
            )
        except SignInThrottledError:
            return entered.show_throttled()
        if not tried.verified:
            return entered.show_wrong_password()
        resets_account = len(tried.verified) == len(tried.candidates)
        return self._let_in(entered, list(tried.verified), resets_account=resets_account)

    @property
    def _verifier(self) -> PasswordVerifier:
        return PasswordVerifier(self.dependencies.database, self.dependencies.throttles)

    def _let_in(
        self, entered: SubmittedSignIn, verified: list[Member], *, resets_account: bool
    ) -> ResponseReturnValue:
        """`resets_account`: nobody else has this address elsewhere, whose account could be guessed at meanwhile."""
        with self.dependencies.database.transaction() as connection:
            account = throttle_key(entered.email)
            self.dependencies.throttles.record_success(
                connection, account, client_address(), resets_account=resets_account
            )
            verified = [member for member in verified if lock_unchanged_password(connection, member)]
            if not verified:
                return entered.show_wrong_password()
            for member in verified:
                if needs_rehash(member.password_hash or ""):
                    set_password(connection, member.id, entered.password)
            if len(verified) == 1:
                return _begin(connection, verified[0])
        session[_CHOICE] = {
            "members": {str(member.id): _fingerprint(member) for member in verified},
            "at": int(time()),
        }
        return render_template("people/choose_merchant.html", members=verified, next=next_path())

    def choose(self) -> ResponseReturnValue:
        """One person, several merchants."""
        choice = session.pop(_CHOICE, {"members": {}, "at": 0})
        chosen = request.form.get("member", "")
        if chosen in choice["members"] and time() - choice["at"] <= _CHOICE_GOOD_FOR_S:
            with self.dependencies.database.transaction() as connection:
                member = find_member(connection, UUID(chosen))
                if member is not None and _fingerprint(member) == choice["members"][chosen]:
                    return _begin(connection, member)
        return redirect(url_for("people.sign_in"), _SEE_OTHER)

    def sign_out(self) -> ResponseReturnValue:
        who = current_session()
        with self.dependencies.database.transaction() as connection:
            end_session(connection, who.member.id, who.session_hash)
            record_action(connection, Action.SIGNED_OUT)
        clear_session_token()
        return redirect(url_for("people.sign_in"), _SEE_OTHER)


def begin_as(connection: Connection[Any], member_id: UUID, merchant_id: UUID, email: str) -> None:
    """This browser is signed in as this member from now on."""
    token = start_session(connection, member_id, client_address(), request.headers.get("User-Agent", ""))
    add_audit_entry(
        connection, Actor(email, member_id, client_address()), Action.SIGNED_IN, merchant_id=merchant_id
    )
    remember_known_account(email)
    set_session_token(token)


def _begin(connection: Connection[Any], member: Member) -> ResponseReturnValue:
    begin_as(connection, member.id, member.merchant_id, member.email)
    return redirect(next_path() or url_for("applications.listing"), _SEE_OTHER)


def _fingerprint(member: Member) -> str:
    """Of the password that was given: a choice is worth nothing once that was changed."""
    return hashlib.sha256(f"{member.id} {member.password_hash}".encode()).hexdigest()[:32]

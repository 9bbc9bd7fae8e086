"""Pages for signing in and out.

Nothing reveals whether an email address has an account: neither texts, nor timing, nor throttling.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import time
from typing import Any
from uuid import UUID

from flask import redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from psycopg import Connection

from services.dashboard.access import current_session, record_action
from services.dashboard.dependencies import SERVICE, Dependencies
from services.dashboard.row_security import RowScope, limit_request
from shared.console.cookies import (
    clear_session_token,
    known_browser,
    remember_known_account,
    set_session_token,
)
from shared.console.requests import client_address, next_path
from shared.console.sign_in_form import SubmittedSignIn, read_sign_in_form, show_sign_in_form
from shared.domain.accounts.failed_sign_ins import FailureReason, SignInFailure, record_failed_sign_in
from shared.domain.accounts.members import (
    Member,
    find_inactive_members,
    find_member,
    find_members_by_email,
)
from shared.domain.accounts.passwords import (
    PasswordVerification,
    PasswordVerifier,
    account_fingerprint,
    needs_rehash,
)
from shared.domain.accounts.sessions import end_session, start_session
from shared.domain.accounts.throttles import CountedAttempt, SignInThrottledError
from shared.domain.accounts.users import User, lock_unchanged_password, rehash_password
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.security_changes import begin_to_notice_changes

_SEE_OTHER = 303
_CHOICE = "choice"
"""The field of the signed cookie that holds which members the person may sign in as, after the password was right."""
_CHOICE_VALID_FOR_S = 300


@dataclass(frozen=True, slots=True)
class SignInPages:
    dependencies: Dependencies

    def sign_in(self) -> ResponseReturnValue:
        return show_sign_in_form()

    def check(self) -> ResponseReturnValue:
        submitted = read_sign_in_form()
        limit_request(RowScope(email=submitted.email))
        with self.dependencies.database.cursor() as cursor:
            members = find_members_by_email(cursor, submitted.email)
        user = members[0].user if members else None
        try:
            tried = verify_password(self.dependencies, submitted.email, user, members, submitted.password)
        except SignInThrottledError:
            return submitted.show_throttled()
        if tried.verified is not None:
            return self._complete_sign_in(submitted, tried.attempt, tried.verified)
        if not members:
            record_failures(self.dependencies, self._explain_no_account(submitted.email))
        return submitted.show_wrong_password()

    def _explain_no_account(self, email: str) -> list[SignInFailure]:
        with self.dependencies.database.cursor() as cursor:
            inactive = find_inactive_members(cursor, email)
        return [
            SignInFailure(
                FailureReason.REMOVED if is_removed else FailureReason.NOT_JOINED, member_id, merchant_id
            )
            for member_id, merchant_id, is_removed in inactive
        ] or [SignInFailure(FailureReason.UNKNOWN_ACCOUNT)]

    def _complete_sign_in(
        self, submitted: SubmittedSignIn, attempt: CountedAttempt, user: User
    ) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            self.dependencies.throttles.record_success(connection, attempt)
            is_unchanged = lock_unchanged_password(connection, user)
            if is_unchanged and needs_rehash(user.password_hash):
                rehash_password(connection, user, submitted.password)
            members = find_members_by_email(connection.cursor(), user.email)
            if is_unchanged and len(members) == 1:
                return _sign_in(connection, members[0])
        if not is_unchanged or not members:
            wrong = [_failure(FailureReason.WRONG_PASSWORD, member) for member in members]
            record_failures(self.dependencies, wrong or self._explain_no_account(submitted.email))
            return submitted.show_wrong_password()
        fingerprint = account_fingerprint(_user(members[0]))
        remember_known_account(_user(members[0]))
        session[_CHOICE] = {
            "members": {str(member.id): fingerprint for member in members},
            "email": user.email,
            "at": int(time()),
        }
        return render_template("people/choose_merchant.html", members=members, next=next_path())

    def choose(self) -> ResponseReturnValue:
        """Sign in as one of several members: the same person can work for several merchants."""
        choice = session.pop(_CHOICE, {"members": {}, "at": 0})
        chosen = request.form.get("member", "")
        limit_request(RowScope(email=choice.get("email")))
        if chosen in choice["members"] and time() - choice["at"] <= _CHOICE_VALID_FOR_S:
            with self.dependencies.database.transaction() as connection:
                member = find_member(connection, UUID(chosen))
                user = None if member is None else member.user
                if (
                    member is not None
                    and user is not None
                    and account_fingerprint(user) == choice["members"][chosen]
                    and lock_unchanged_password(connection, user)
                ):
                    return _sign_in(connection, member)
        return redirect(url_for("people.sign_in"), _SEE_OTHER)

    def sign_out(self) -> ResponseReturnValue:
        who = current_session()
        with self.dependencies.database.transaction() as connection:
            end_session(connection, who.member.id, who.session_hash)
            record_action(connection, Action.SIGNED_OUT)
        clear_session_token()
        return redirect(url_for("people.sign_in"), _SEE_OTHER)


def verify_password(
    dependencies: Dependencies, email: str, user: User | None, members: Sequence[Member], password: str
) -> PasswordVerification[User]:
    """Check the password of an account, and record a failure for each of these members.

    Without a user, nobody's password is checked, in the same time. Raises SignInThrottledError, which is recorded too,
    and TooManyPasswordChecksError.
    """
    verifier = PasswordVerifier(dependencies.database, dependencies.throttles)
    try:
        tried = verifier.verify(email, user, client_address(), known_browser(), password)
    except SignInThrottledError as throttled:
        guessed = [] if throttled.is_address else members
        record_failures(
            dependencies,
            [_failure(FailureReason.THROTTLED, member) for member in guessed]
            or [SignInFailure(FailureReason.THROTTLED)],
        )
        raise
    if tried.verified is None:
        record_failures(dependencies, [_failure(FailureReason.WRONG_PASSWORD, member) for member in members])
    return tried


def record_failures(dependencies: Dependencies, failures: Sequence[SignInFailure]) -> None:
    if failures:
        record_failed_sign_in(dependencies.database, SERVICE, client_address(), failures)


def start_member_session(connection: Connection[Any], member: Member) -> None:
    """Sign this browser in as this member, and record it in the audit log."""
    limit_request(RowScope(member.merchant_id, member.email), connection)
    token = start_session(connection, member.id, client_address(), request.headers.get("User-Agent", ""))
    actor = Actor(member.email, member.id, client_address())
    add_audit_entry(connection, actor, Action.SIGNED_IN, merchant_id=member.merchant_id)
    begin_to_notice_changes(connection, member.id)
    remember_known_account(_user(member))
    set_session_token(token)


def _sign_in(connection: Connection[Any], member: Member) -> ResponseReturnValue:
    start_member_session(connection, member)
    return redirect(next_path() or url_for("applications.listing"), _SEE_OTHER)


def _failure(reason: FailureReason, member: Member) -> SignInFailure:
    return SignInFailure(reason, member.id, member.merchant_id)


def _user(member: Member) -> User:
    assert member.user is not None, "the member has joined"
    return member.user

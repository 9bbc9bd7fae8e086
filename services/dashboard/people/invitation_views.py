"""The page of an invitation link: choose a password, or sign in with the account that the address has, and join.

Whoever holds a valid link learns whether its address has an account. A link that was emailed is shown to nobody else.
"""

from dataclasses import dataclass
from typing import Any

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from psycopg import Connection
from werkzeug.exceptions import Gone

from services.dashboard.access import note_security_change
from services.dashboard.dependencies import Dependencies
from services.dashboard.people.invitations import (
    Invitation,
    InvitationExpiredError,
    accept_with_account,
    accept_with_new_password,
    find_invitation,
)
from services.dashboard.people.sign_in_views import start_member_session, verify_password
from services.dashboard.row_security import as_merchant, limit_to_invitation
from shared.console.account import password_error
from shared.console.requests import client_address
from shared.domain.accounts.joining import JoinStep, JoinStepChangedError
from shared.domain.accounts.members import Member, find_members_by_email
from shared.domain.accounts.password_rules import MAX_LENGTH, PasswordNotAllowedError, check_password
from shared.domain.accounts.throttles import SignInThrottledError
from shared.domain.accounts.users import find_user
from shared.domain.audit_log import Action, Actor, add_audit_entry

_SEE_OTHER = 303
_CONFLICT = 409
_UNPROCESSABLE = 422
_TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class InvitationPages:
    dependencies: Dependencies

    def invitation(self, token: str) -> ResponseReturnValue:
        return self._page(token, None)

    def join(self, token: str) -> ResponseReturnValue:
        """Do the step that the form was shown for. If it is another step by now, show that one."""
        password = request.form.get("password", "")[: 5 * MAX_LENGTH]
        try:
            invitation = self._find(token)
            match invitation.step, request.form.get("step"):
                case JoinStep.CHOOSE_PASSWORD, JoinStep.CHOOSE_PASSWORD:
                    return self._choose_password(token, invitation, password)
                case JoinStep.SIGN_IN, JoinStep.SIGN_IN:
                    return self._sign_in(token, invitation, password)
        except InvitationExpiredError:
            raise Gone from None
        except JoinStepChangedError:
            pass
        changed = _("The account of this address has changed meanwhile. Please look again.")
        return self._page(token, changed), _CONFLICT

    def _choose_password(self, token: str, invitation: Invitation, password: str) -> ResponseReturnValue:
        try:
            check_password(password, invitation.member.email)
        except PasswordNotAllowedError as refused:
            return self._page(token, password_error(refused.flaw)), _UNPROCESSABLE
        with self.dependencies.database.transaction() as connection:
            member = accept_with_new_password(connection, token, invitation, password)
            for other in find_members_by_email(connection.cursor(), member.email):
                if other.id != member.id:
                    _record(connection, Action.PASSWORD_CHANGED, other)
            _enter(connection, member)
        return redirect(url_for("applications.listing"), _SEE_OTHER)

    def _sign_in(self, token: str, invitation: Invitation, password: str) -> ResponseReturnValue:
        email = invitation.member.email
        with self.dependencies.database.cursor() as cursor:
            members = find_members_by_email(cursor, email)
            user = find_user(cursor.connection, email)
        try:
            tried = verify_password(self.dependencies, email, user, members or [invitation.member], password)
        except SignInThrottledError:
            throttled = _("Too many sign-ins have failed. Wait a minute and try again.")
            return self._page(token, throttled), _TOO_MANY
        if tried.verified is None:
            return self._page(token, _("This is not the password of your account.")), _UNPROCESSABLE
        with self.dependencies.database.transaction() as connection:
            self.dependencies.throttles.record_success(connection, tried.attempt)
            _enter(connection, accept_with_account(connection, token, invitation, tried.verified))
        return redirect(url_for("applications.listing"), _SEE_OTHER)

    def _page(self, token: str, error: str | None) -> str:
        try:
            invitation = self._find(token)
        except InvitationExpiredError:
            raise Gone from None
        with self.dependencies.database.cursor() as cursor:
            is_member_elsewhere = bool(find_members_by_email(cursor, invitation.member.email))
        return render_template(
            "people/invitation.html",
            token=token,
            email=invitation.member.email,
            merchant=invitation.member.merchant_name,
            step=invitation.step,
            is_replacing=invitation.step is JoinStep.CHOOSE_PASSWORD and is_member_elsewhere,
            error=error,
        )

    def _find(self, token: str) -> Invitation:
        with self.dependencies.database.transaction() as connection:
            limit_to_invitation(connection, token)
            return find_invitation(connection, token)


def _enter(connection: Connection[Any], member: Member) -> None:
    _record(connection, Action.MEMBER_JOINED, member)
    start_member_session(connection, member)


def _record(connection: Connection[Any], action: Action, member: Member) -> None:
    actor = Actor(member.email, member.id, client_address())
    with as_merchant(connection, member.merchant_id):
        entry_id = add_audit_entry(connection, actor, action, merchant_id=member.merchant_id)
    note_security_change(member.merchant_id, entry_id)

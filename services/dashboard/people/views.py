"""Pages for signing in and out, accepting an invitation, the account and the audit log; and all routes.

Nothing reveals whether an email address has an account: neither texts, nor timing, nor throttling.
"""

from dataclasses import dataclass, replace
from time import time
from typing import Any
from uuid import UUID

from flask import Blueprint, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from psycopg import Connection
from werkzeug.exceptions import Gone

from services.dashboard.access import current_session, record_action
from services.dashboard.dependencies import SERVICE, Dependencies
from services.dashboard.people.invitations import InvitationExpiredError, find_invitation, redeem_invitation
from services.dashboard.people.team_views import TeamPages
from shared.console.account import AccountPages, password_error
from shared.console.audit_log import PAGE_SIZE, render_audit_log
from shared.console.cookies import (
    clear_session_token,
    known_browser,
    remember_known_account,
    set_session_token,
)
from shared.console.guard import Access, add_route
from shared.console.requests import client_address, next_path
from shared.console.sign_in_form import SubmittedSignIn, read_sign_in_form, show_sign_in_form
from shared.domain.accounts.failed_sign_ins import (
    FailureReason,
    SignInFailure,
    list_failed_sign_ins,
    record_failed_sign_in,
)
from shared.domain.accounts.members import (
    Member,
    find_inactive_members,
    find_member,
    find_members_by_email,
    lock_unchanged_password,
    set_password,
)
from shared.domain.accounts.password_rules import PasswordNotAllowedError, check_password
from shared.domain.accounts.passwords import (
    PasswordVerification,
    PasswordVerifier,
    account_fingerprint,
    needs_rehash,
)
from shared.domain.accounts.roles import Permission
from shared.domain.accounts.sessions import end_session, start_session
from shared.domain.accounts.throttles import SignInThrottledError
from shared.domain.applications.registry import list_merchant_applications
from shared.domain.audit_log import Action, Actor, add_audit_entry, list_entries
from shared.platform.uuids import parse_uuid

_SEE_OTHER = 303
_UNPROCESSABLE = 422
_POST = ("POST",)
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
        with self.dependencies.database.cursor() as cursor:
            candidates = find_members_by_email(cursor, submitted.email)
        try:
            tried = PasswordVerifier(self.dependencies.database, self.dependencies.throttles).verify(
                submitted.email, candidates, client_address(), known_browser(), submitted.password
            )
        except SignInThrottledError as throttled:
            guessed = [] if throttled.is_address else candidates
            self._record_failures(
                [_failure(FailureReason.THROTTLED, member) for member in guessed]
                or [SignInFailure(FailureReason.THROTTLED)]
            )
            return submitted.show_throttled()
        if tried.verified:
            return self._complete_sign_in(submitted, tried)
        refused = [_failure(FailureReason.THROTTLED, member) for member in tried.throttled]
        wrong = [member for member in candidates if member not in tried.throttled]
        refused += [_failure(FailureReason.WRONG_PASSWORD, member) for member in wrong]
        self._record_failures(refused or self._explain_no_candidate(submitted.email))
        return submitted.show_throttled() if tried.throttled else submitted.show_wrong_password()

    def _explain_no_candidate(self, email: str) -> list[SignInFailure]:
        with self.dependencies.database.cursor() as cursor:
            inactive = find_inactive_members(cursor, email)
        return [
            SignInFailure(
                FailureReason.REMOVED if is_removed else FailureReason.NOT_JOINED, member_id, merchant_id
            )
            for member_id, merchant_id, is_removed in inactive
        ] or [SignInFailure(FailureReason.UNKNOWN_ACCOUNT)]

    def _record_failures(self, failures: list[SignInFailure]) -> None:
        record_failed_sign_in(self.dependencies.database, SERVICE, client_address(), failures)

    def _complete_sign_in(
        self, submitted: SubmittedSignIn, tried: PasswordVerification[Member]
    ) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            ids = [str(member.id) for member in tried.verified]
            self.dependencies.throttles.record_success(connection, tried.attempt, ids)
            verified = [
                _rehash_if_weak(connection, member, submitted.password)
                for member in tried.verified
                if lock_unchanged_password(connection, member)
            ]
            if len(verified) == 1:
                return _sign_in(connection, verified[0])
        if not verified:
            self._record_failures(
                [_failure(FailureReason.WRONG_PASSWORD, member) for member in tried.verified]
            )
            return submitted.show_wrong_password()
        for member in verified:
            remember_known_account(member)
        session[_CHOICE] = {
            "members": {str(member.id): account_fingerprint(member) for member in verified},
            "at": int(time()),
        }
        return render_template("people/choose_merchant.html", members=verified, next=next_path())

    def choose(self) -> ResponseReturnValue:
        """Sign in as one of several members: the same person can work for several merchants."""
        choice = session.pop(_CHOICE, {"members": {}, "at": 0})
        chosen = request.form.get("member", "")
        if chosen in choice["members"] and time() - choice["at"] <= _CHOICE_VALID_FOR_S:
            with self.dependencies.database.transaction() as connection:
                member = find_member(connection, UUID(chosen))
                if member is not None and account_fingerprint(member) == choice["members"][chosen]:
                    return _sign_in(connection, member)
        return redirect(url_for("people.sign_in"), _SEE_OTHER)

    def sign_out(self) -> ResponseReturnValue:
        who = current_session()
        with self.dependencies.database.transaction() as connection:
            end_session(connection, who.member.id, who.session_hash)
            record_action(connection, Action.SIGNED_OUT)
        clear_session_token()
        return redirect(url_for("people.sign_in"), _SEE_OTHER)


def _failure(reason: FailureReason, member: Member) -> SignInFailure:
    return SignInFailure(reason, member.id, member.merchant_id)


def start_member_session(connection: Connection[Any], member: Member) -> None:
    """Sign this browser in as this member, and record it in the audit log."""
    token = start_session(connection, member.id, client_address(), request.headers.get("User-Agent", ""))
    actor = Actor(member.email, member.id, client_address())
    add_audit_entry(connection, actor, Action.SIGNED_IN, merchant_id=member.merchant_id)
    remember_known_account(member)
    set_session_token(token)


def _sign_in(connection: Connection[Any], member: Member) -> ResponseReturnValue:
    start_member_session(connection, member)
    return redirect(next_path() or url_for("applications.listing"), _SEE_OTHER)


def _rehash_if_weak(connection: Connection[Any], member: Member, password: str) -> Member:
    """Hash the password again if its hash was made with weaker parameters. Return the member as it is stored now."""
    if not needs_rehash(member.password_hash or ""):
        return member
    return replace(member, password_hash=set_password(connection, member.id, password))


@dataclass(frozen=True, slots=True)
class InvitationPages:
    dependencies: Dependencies

    def invitation(self, token: str) -> ResponseReturnValue:
        return self._page(token, None)

    def join(self, token: str) -> ResponseReturnValue:
        password = request.form.get("password", "")
        email, _merchant = self._find_or_gone(token)
        try:
            check_password(password, email)
        except PasswordNotAllowedError as refused:
            return self._page(token, password_error(refused.flaw)), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                member = redeem_invitation(connection, token, password)
                actor = Actor(member.email, member.id, request.remote_addr)
                add_audit_entry(connection, actor, Action.MEMBER_JOINED, merchant_id=member.merchant_id)
                start_member_session(connection, member)
        except InvitationExpiredError:
            raise Gone from None
        return redirect(url_for("applications.listing"), _SEE_OTHER)

    def _page(self, token: str, error: str | None) -> str:
        email, merchant = self._find_or_gone(token)
        return render_template(
            "people/invitation.html", token=token, email=email, merchant=merchant, error=error
        )

    def _find_or_gone(self, token: str) -> tuple[str, str]:
        try:
            with self.dependencies.database.transaction() as connection:
                return find_invitation(connection, token)
        except InvitationExpiredError:
            raise Gone from None


@dataclass(frozen=True, slots=True)
class AuditPages:
    dependencies: Dependencies

    def audit(self) -> ResponseReturnValue:
        merchant = current_session().member.merchant_id
        before = parse_uuid(request.args.get("before", ""))
        with self.dependencies.database.transaction() as connection:
            entries = list_entries(connection, merchant, before=before, limit=PAGE_SIZE + 1)
            if current_session().may(Permission.TEAM):
                entries += list_failed_sign_ins(connection, merchant, before=before, limit=PAGE_SIZE + 1)
            applications = list_merchant_applications(connection, merchant)
        names = {application.id: application.name for application in applications}
        return render_audit_log(entries, names, is_first_page=before is None)


def people_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("people", __name__)
    sign_in = SignInPages(dependencies)
    add_route(blueprint, "/sign-in", sign_in.sign_in, Access.PUBLIC)
    add_route(blueprint, "/sign-in", sign_in.check, Access.PUBLIC, _POST)
    add_route(blueprint, "/sign-in/merchant", sign_in.choose, Access.PUBLIC, _POST)
    add_route(blueprint, "/sign-out", sign_in.sign_out, Permission.READ, _POST)
    invitation = InvitationPages(dependencies)
    add_route(blueprint, "/invitations/<token>", invitation.invitation, Access.PUBLIC)
    add_route(blueprint, "/invitations/<token>", invitation.join, Access.PUBLIC, _POST)
    account = AccountPages(
        dependencies.database,
        dependencies.throttles,
        lambda: current_session().account,
        set_password,
        record_action,
    )
    add_route(blueprint, "/account", account.account, Permission.READ)
    add_route(blueprint, "/account/password", account.change_password, Permission.READ, _POST)
    add_route(blueprint, "/account/sessions", account.end_session, Permission.READ, _POST)
    team = TeamPages(dependencies)
    add_route(blueprint, "/team", team.team, Permission.READ)
    add_route(blueprint, "/team/invite", team.invite, Permission.TEAM, _POST)
    add_route(blueprint, "/team/<uuid:person>/invite", team.invite_again, Permission.TEAM, _POST)
    add_route(blueprint, "/team/<uuid:person>/role", team.change_role, Permission.TEAM, _POST)
    add_route(blueprint, "/team/<uuid:person>/remove", team.remove, Permission.TEAM, _POST)
    add_route(blueprint, "/team/credentials", team.revoke_credentials, Permission.TEAM, _POST)
    add_route(blueprint, "/audit", AuditPages(dependencies).audit, Permission.READ)
    return blueprint

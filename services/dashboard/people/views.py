"""The account page, and all routes of the dashboard for people."""

from typing import Any

from flask import Blueprint
from psycopg import Connection

from services.dashboard.access import current_session, note_security_change, record_action
from services.dashboard.dependencies import Dependencies
from services.dashboard.people.audit_views import AuditPages
from services.dashboard.people.invitation_views import InvitationPages
from services.dashboard.people.sign_in_views import SignInPages
from services.dashboard.people.team_views import TeamPages
from services.dashboard.row_security import as_merchant
from shared.console.account import AccountPages
from shared.console.guard import Access, SignedInAccount, add_route, add_sensitive_route
from shared.domain.accounts.members import find_members_by_email
from shared.domain.accounts.roles import Permission
from shared.domain.accounts.users import User, change_password
from shared.domain.audit_log import Action, Actor, add_audit_entry

_POST = ("POST",)


def _change_password(connection: Connection[Any], account: SignedInAccount, password: str) -> User | None:
    """Change the password of the account, for all its memberships, and note it for the other merchants, too."""
    member = current_session().member
    assert member.user is not None, "they are signed in"
    changed = change_password(connection, member.user, password, account.session_hash)
    if changed is not None:
        for other in find_members_by_email(connection.cursor(), member.email):
            if other.id != member.id:
                actor = Actor(other.email, other.id, account.address)
                merchant_id = other.merchant_id
                with as_merchant(connection, merchant_id):
                    entry_id = add_audit_entry(
                        connection, actor, Action.PASSWORD_CHANGED, merchant_id=merchant_id
                    )
                note_security_change(merchant_id, entry_id)
    return changed


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
        _change_password,
        record_action,
    )
    add_route(blueprint, "/account", account.account, Permission.READ)
    add_route(blueprint, "/account/password", account.change_password, Permission.READ, _POST)
    add_route(blueprint, "/account/sessions", account.end_session, Permission.READ, _POST)
    team = TeamPages(dependencies)
    add_route(blueprint, "/team", team.team, Permission.READ)
    add_sensitive_route(blueprint, "/team/invite", team.invite, Permission.TEAM)
    add_sensitive_route(blueprint, "/team/<uuid:person>/invite", team.invite_again, Permission.TEAM)
    add_sensitive_route(blueprint, "/team/<uuid:person>/role", team.change_role, Permission.TEAM)
    add_sensitive_route(blueprint, "/team/<uuid:person>/remove", team.remove, Permission.TEAM)
    add_sensitive_route(blueprint, "/team/credentials", team.revoke_credentials, Permission.TEAM)
    audit = AuditPages(dependencies)
    add_route(blueprint, "/audit", audit.audit, Permission.READ)
    add_route(blueprint, "/audit/seen", audit.changes_seen, Permission.TEAM, _POST)
    return blueprint

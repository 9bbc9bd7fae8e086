"""The routes of this room: each says whom it is for."""

from flask import Blueprint

from services.dashboard.access import current_session, record_action
from services.dashboard.dependencies import Dependencies
from services.dashboard.people.audit_log import AuditPages
from services.dashboard.people.invitation import InvitationPages
from services.dashboard.people.signing_in import SignInPages
from services.dashboard.people.team import TeamPages
from shared.console.account import AccountPages
from shared.console.guard import Access, add_route
from shared.domain.accounts.members import set_password
from shared.domain.accounts.roles import Permission

_POST = ("POST",)


def people_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("people", __name__)
    signing = SignInPages(dependencies)
    add_route(blueprint, "/sign-in", signing.sign_in, Access.PUBLIC)
    add_route(blueprint, "/sign-in", signing.check, Access.PUBLIC, _POST)
    add_route(blueprint, "/sign-in/merchant", signing.choose, Access.PUBLIC, _POST)
    add_route(blueprint, "/sign-out", signing.sign_out, Permission.READ, _POST)
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
    add_route(blueprint, "/audit", AuditPages(dependencies).audit, Permission.READ)
    return blueprint

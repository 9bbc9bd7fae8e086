"""The routes of this room: each says whom it is for."""

from flask import Blueprint

from services.dashboard.access import Open, add_route, note, signed_in
from services.dashboard.people.audit_log import AuditPages
from services.dashboard.people.invitation import InvitationPages
from services.dashboard.people.signing_in import SignInPages
from services.dashboard.people.team import TeamPages
from services.dashboard.workshop import Workshop
from shared.console.account import AccountPages
from shared.domain.accounts.members import set_password
from shared.domain.accounts.roles import Permission

_POST = ("POST",)


def people_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("people", __name__)
    signing = SignInPages(workshop)
    add_route(blueprint, "/sign-in", signing.sign_in, Open.TO_ALL)
    add_route(blueprint, "/sign-in", signing.check, Open.TO_ALL, _POST)
    add_route(blueprint, "/sign-in/merchant", signing.choose, Open.TO_ALL, _POST)
    add_route(blueprint, "/sign-out", signing.sign_out, Permission.READ, _POST)
    invitation = InvitationPages(workshop)
    add_route(blueprint, "/invitations/<token>", invitation.invitation, Open.TO_ALL)
    add_route(blueprint, "/invitations/<token>", invitation.join, Open.TO_ALL, _POST)
    account = AccountPages(
        workshop.database, workshop.throttles, lambda: signed_in().holder, set_password, note
    )
    add_route(blueprint, "/account", account.account, Permission.READ)
    add_route(blueprint, "/account/password", account.change_password, Permission.READ, _POST)
    add_route(blueprint, "/account/sessions", account.end_session, Permission.READ, _POST)
    team = TeamPages(workshop)
    add_route(blueprint, "/team", team.team, Permission.READ)
    add_route(blueprint, "/team/invite", team.invite, Permission.TEAM, _POST)
    add_route(blueprint, "/team/<uuid:person>/invite", team.invite_again, Permission.TEAM, _POST)
    add_route(blueprint, "/team/<uuid:person>/role", team.change_role, Permission.TEAM, _POST)
    add_route(blueprint, "/team/<uuid:person>/remove", team.remove, Permission.TEAM, _POST)
    add_route(blueprint, "/audit", AuditPages(workshop).audit, Permission.READ)
    return blueprint

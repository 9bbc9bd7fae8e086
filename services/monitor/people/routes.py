"""The routes of this room."""

from flask import Blueprint

from services.monitor.access import add_route, note, signed_in
from services.monitor.people.audit_log import AuditPages
from services.monitor.people.signing_in import SignInPages
from services.monitor.workshop import Workshop
from shared.console.account import AccountPages
from shared.domain.accounts.operators import set_operator_password

_POST = ("POST",)


def people_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("people", __name__)
    signing = SignInPages(workshop)
    add_route(blueprint, "/sign-in", signing.sign_in, is_open=True)
    add_route(blueprint, "/sign-in", signing.check, _POST, is_open=True)
    add_route(blueprint, "/sign-out", signing.sign_out, _POST)
    account = AccountPages(
        workshop.database, workshop.throttles, lambda: signed_in().holder, set_operator_password, note
    )
    add_route(blueprint, "/account", account.account)
    add_route(blueprint, "/account/password", account.change_password, _POST)
    add_route(blueprint, "/account/sessions", account.end_session, _POST)
    add_route(blueprint, "/log", AuditPages(workshop).audit)
    return blueprint

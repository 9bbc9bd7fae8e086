"""The routes of this room: each says whom it is for."""

from flask import Blueprint

from services.dashboard.deliveries.pages import DeliveryPages
from services.dashboard.deliveries.resending_pages import ResendingPages
from services.dashboard.dependencies import Dependencies
from shared.console.guard import add_route
from shared.domain.accounts.roles import Permission

_POST = ("POST",)
_ALL = "/applications/<application>/deliveries"


def deliveries_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("deliveries", __name__)
    pages = DeliveryPages(dependencies)
    add_route(blueprint, _ALL, pages.listing, Permission.READ)
    add_route(blueprint, f"{_ALL}/<uuid:delivery>", pages.show, Permission.READ)
    add_route(blueprint, f"{_ALL}/<uuid:delivery>/resend", pages.resend, Permission.RESEND, _POST)
    resending = ResendingPages(dependencies)
    add_route(blueprint, f"{_ALL}/resend-failed", resending.choose_failed, Permission.RESEND)
    add_route(blueprint, f"{_ALL}/resends", resending.resend_failed, Permission.RESEND, _POST)
    add_route(blueprint, f"{_ALL}/resends/<uuid:resend>", resending.progress, Permission.READ)
    add_route(blueprint, f"{_ALL}/resends/<uuid:resend>/stop", resending.stop, Permission.RESEND, _POST)
    return blueprint

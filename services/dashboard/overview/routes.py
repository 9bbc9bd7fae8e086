"""The route of this room: whoever is signed in may read."""

from flask import Blueprint

from services.dashboard.access import add_route
from services.dashboard.overview.pages import OverviewPages
from services.dashboard.workshop import Workshop
from shared.domain.accounts.roles import Permission


def overview_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("overview", __name__)
    add_route(blueprint, "/applications/<application>", OverviewPages(workshop).show, Permission.READ)
    return blueprint

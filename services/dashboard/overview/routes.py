"""The route of this room: whoever is signed in may read."""

from flask import Blueprint

from services.dashboard.dependencies import Dependencies
from services.dashboard.overview.pages import OverviewPages
from shared.console.guard import add_route
from shared.domain.accounts.roles import Permission


def overview_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("overview", __name__)
    add_route(blueprint, "/applications/<application>", OverviewPages(dependencies).show, Permission.READ)
    return blueprint

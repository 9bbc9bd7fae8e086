"""The routes of this room."""

from flask import Blueprint

from services.monitor.access import add_route
from services.monitor.overview.pages import OverviewPages
from services.monitor.workshop import Workshop


def overview_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("overview", __name__)
    add_route(blueprint, "/", OverviewPages(workshop).show)
    return blueprint

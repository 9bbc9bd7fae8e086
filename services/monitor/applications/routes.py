"""The routes of this room."""

from flask import Blueprint

from services.monitor.access import add_route
from services.monitor.applications.pages import ApplicationPages
from services.monitor.workshop import Workshop

_POST = ("POST",)


def applications_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("applications", __name__)
    pages = ApplicationPages(workshop)
    add_route(blueprint, "/applications", pages.listing)
    add_route(blueprint, "/applications/<uuid:application>", pages.show)
    add_route(blueprint, "/applications/<uuid:application>/pause", pages.pause, _POST)
    add_route(blueprint, "/applications/<uuid:application>/resume", pages.resume, _POST)
    return blueprint

"""The routes of this room."""

from flask import Blueprint

from services.monitor.access import add_route
from services.monitor.attempts.pages import AttemptPages
from services.monitor.workshop import Workshop

_POST = ("POST",)


def attempts_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("attempts", __name__)
    pages = AttemptPages(workshop)
    add_route(blueprint, "/attempts", pages.listing)
    add_route(blueprint, "/attempts/<uuid:attempt>", pages.show)
    add_route(blueprint, "/attempts/<uuid:attempt>/decide", pages.decide, _POST)
    add_route(blueprint, "/attempts/<uuid:attempt>/handled", pages.handle, _POST)
    return blueprint

"""The routes of this room."""

from flask import Blueprint

from services.monitor.access import add_route
from services.monitor.topics.pages import TopicPages
from services.monitor.workshop import Workshop


def topics_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("topics", __name__)
    pages = TopicPages(workshop)
    add_route(blueprint, "/topics", pages.listing)
    add_route(blueprint, "/topics/<name>", pages.show)
    return blueprint

"""The routes of this room: whoever is signed in may read."""

from flask import Blueprint

from services.dashboard.access import add_route
from services.dashboard.payments.exporting import PaymentExport
from services.dashboard.payments.pages import PaymentPages
from services.dashboard.workshop import Workshop
from shared.domain.accounts.roles import Permission


def payments_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("payments", __name__)
    pages = PaymentPages(workshop)
    add_route(blueprint, "/applications/<application>/payments", pages.listing, Permission.READ)
    add_route(blueprint, "/applications/<application>/payments/<uuid:intent>", pages.show, Permission.READ)
    export = PaymentExport(workshop).export
    add_route(blueprint, "/applications/<application>/payments.csv", export, Permission.READ)
    return blueprint

"""The routes of this room: whoever is signed in may read."""

from flask import Blueprint

from services.dashboard.dependencies import Dependencies
from services.dashboard.payments.exporting import PaymentExport
from services.dashboard.payments.pages import PaymentPages
from shared.console.guard import add_route
from shared.domain.accounts.roles import Permission


def payments_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("payments", __name__)
    pages = PaymentPages(dependencies)
    add_route(blueprint, "/applications/<application>/payments", pages.listing, Permission.READ)
    add_route(blueprint, "/applications/<application>/payments/<uuid:intent>", pages.show, Permission.READ)
    export = PaymentExport(dependencies).export
    add_route(blueprint, "/applications/<application>/payments.csv", export, Permission.READ)
    return blueprint

"""The shopkeeper's pages, for trying things out: all orders, the endpoint's switch, its last requests, its secrets.

There is no sign-in: they exist only in a shop on this machine, for requests to this machine. Not for copying.
"""

import re
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from examples.shop.database import Database
from examples.shop.endpoint import Behaviour, Endpoint
from examples.shop.orders import latest_orders
from examples.shop.payments import payments_of
from examples.shop.progress import state_of
from examples.shop.requests_seen import Verdict, last_requests
from examples.shop.settings import Settings, is_loopback
from examples.shop.signatures import add_secret

_SECRET = re.compile(r"whsec_[\x21-\x7e]{8,200}")


@dataclass(frozen=True, slots=True)
class Backstage:
    settings: Settings
    database: Database
    endpoint: Endpoint

    def only_here(self) -> None:
        """Also against a page elsewhere whose name has been made to point at this machine."""
        if not self.settings.has_backstage or not is_loopback(urlsplit(f"//{request.host}").hostname):
            abort(404)

    def orders(self) -> str:
        with self.database.reading() as connection:
            orders = [
                (order, state_of(order, payments_of(connection, order.id)[-1]))
                for order in latest_orders(connection)
            ]
        return render_template("orders.html", orders=orders)

    def show(self) -> str:
        with self.database.reading() as connection:
            seen = last_requests(connection)
        return render_template(
            "backstage.html",
            behaviours=Behaviour,
            behaviour=self.endpoint.behaviour,
            seen=seen,
            is_stale=bool(seen) and seen[0].verdict is Verdict.BAD_SIGNATURE,
            dashboard_url=self.settings.dashboard_url,
        )

    def set_switch(self) -> ResponseReturnValue:
        try:
            self.endpoint.behave(Behaviour(request.form.get("behaviour", "")))
        except ValueError:
            abort(400)
        flash("switch_is_set")
        return redirect(url_for("backstage.show"), 303)

    def add_secret(self) -> ResponseReturnValue:
        secret = request.form.get("secret", "").strip()
        if _SECRET.fullmatch(secret):
            with self.database.transaction() as connection:
                add_secret(connection, secret, time.time())
            flash("secret_is_added")
        else:
            flash("secret_is_wrong")
        return redirect(url_for("backstage.show"), 303)


def backstage_blueprint(backstage: Backstage) -> Blueprint:
    blueprint = Blueprint("backstage", __name__)
    blueprint.before_request(backstage.only_here)
    blueprint.get("/orders", endpoint="orders")(backstage.orders)
    blueprint.get("/backstage", endpoint="show")(backstage.show)
    blueprint.post("/backstage/switch", endpoint="set_switch")(backstage.set_switch)
    blueprint.post("/backstage/secret", endpoint="add_secret")(backstage.add_secret)
    return blueprint

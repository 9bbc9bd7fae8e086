"""Pages of the shopkeeper, for experiments: all orders, the endpoint switch, its last requests, and the webhook secret.

Do not copy this module: it has no sign-in. The pages respond only if the shop runs on this machine, and only to
requests for this machine.
"""

import re
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from .database import Database
from .endpoint_debug import Behaviour, EndpointRequest, EndpointSwitch, Verdict, last_requests
from .orders import latest_orders
from .payments import list_payments
from .progress import order_state
from .settings import Settings, is_loopback
from .webhook_inbox import add_secret

_DELIVERY_ID = re.compile(r'"id":\s*"([0-9a-f-]{36})"')
_SECRET = re.compile(r"whsec_[\x21-\x7e]{8,200}")


@dataclass(frozen=True, slots=True)
class AdminPages:
    settings: Settings
    database: Database
    endpoint_switch: EndpointSwitch

    def require_local(self) -> None:
        """Respond 404 to other hosts. Checking the Host header also stops DNS rebinding."""
        if not self.settings.has_admin or not is_loopback(urlsplit(f"//{request.host}").hostname):
            abort(404)

    def orders(self) -> str:
        with self.database.reading() as connection:
            orders = [
                (order, order_state(order, list_payments(connection, order.id)[-1]))
                for order in latest_orders(connection)
            ]
        return render_template("orders.html", orders=orders)

    def show(self) -> str:
        with self.database.reading() as connection:
            last = last_requests(connection)
        return render_template(
            "admin.html",
            behaviours=Behaviour,
            behaviour=self.endpoint_switch.behaviour,
            requests=[(one, _find_delivery_id(one)) for one in last],
            is_secret_outdated=bool(last) and last[0].verdict is Verdict.BAD_SIGNATURE,
        )

    def set_switch(self) -> ResponseReturnValue:
        try:
            self.endpoint_switch.set_behaviour(Behaviour(request.form.get("behaviour", "")))
        except ValueError:
            abort(400)
        flash("switch_is_set")
        return redirect(url_for("admin.show"), 303)

    def add_secret(self) -> ResponseReturnValue:
        secret = request.form.get("secret", "").strip()
        if _SECRET.fullmatch(secret):
            with self.database.transaction() as connection:
                add_secret(connection, secret, time.time())
            flash("secret_is_added")
        else:
            flash("secret_is_wrong")
        return redirect(url_for("admin.show"), 303)


def _find_delivery_id(seen: EndpointRequest) -> str | None:
    """Return the id of the delivery in the body, if Mizan signed it."""
    found = None if seen.verdict is Verdict.BAD_SIGNATURE else _DELIVERY_ID.search(seen.body)
    return found and found[1]


def admin_blueprint(admin: AdminPages) -> Blueprint:
    blueprint = Blueprint("admin", __name__)
    blueprint.before_request(admin.require_local)
    blueprint.get("/orders", endpoint="orders")(admin.orders)
    blueprint.get("/admin", endpoint="show")(admin.show)
    blueprint.post("/admin/switch", endpoint="set_switch")(admin.set_switch)
    blueprint.post("/admin/secret", endpoint="add_secret")(admin.add_secret)
    return blueprint

"""Pages of customers: the menu, and the order page, which shows each step live."""

import re
import secrets
import time
from dataclasses import dataclass

from flask import Blueprint, abort, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from .checkout import Checkout, checkout_url
from .database import Database
from .mizan_api import INTENT_NOT_FOUND, MizanUnavailableError
from .orders import MAX_QUANTITY, PRODUCTS, EmptyOrderError, Line, Order, find_order, parse_lines
from .payments import Payment, PaymentStatus, list_payments
from .progress import Step, add_entry, list_entries, order_state, step_progress
from .settlement import Settlement

_ORDER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, slots=True)
class ShopPages:
    database: Database
    checkout: Checkout
    settlement: Settlement

    def menu(self, *, is_empty: bool = False) -> str:
        # The form contains the id of the new order, so that a double click places one order.
        return render_template(
            "menu.html",
            products=PRODUCTS,
            most=MAX_QUANTITY,
            order_id=secrets.token_urlsafe(16),
            is_empty=is_empty,
        )

    def place_order(self) -> ResponseReturnValue:
        try:
            lines = parse_lines(request.form.to_dict())
        except EmptyOrderError:
            return self.menu(is_empty=True), 422
        order_id = self._form_order_id(lines)
        reference = self.checkout.take_order(order_id, lines, g.lang)
        if reference is None:
            return redirect(url_for("shop.order", order_id=order_id), 303)
        return self._redirect_to_checkout(order_id, reference)

    def pay(self, order_id: str) -> ResponseReturnValue:
        """Send the customer from the order page to the checkout, with a new payment if the last one has expired."""
        # Any payment may have changed since the last check. Even an expired one may have been paid late.
        is_certain = self._refresh_payments(order_id)
        order, payment = self._latest(order_id)
        to_order = redirect(url_for("shop.order", order_id=order_id), 303)
        if order.fulfilled_at is not None or payment.status.is_final:
            return to_order
        if not is_certain:
            flash("mizan_unavailable")
            return to_order
        if payment.status is PaymentStatus.CANCELED:
            return self._redirect_to_checkout(order_id, self.checkout.start_new_payment(order))
        return self._redirect_to_checkout(order_id, payment.reference)

    def handle_return(self, order_id: str) -> ResponseReturnValue:
        """Handle the return_url. A visit proves nothing, so ask Mizan."""
        _, payment = self._latest(order_id)
        with self.database.transaction() as connection:
            add_entry(connection, order_id, payment.reference, Step.RETURNED, time.time())
        self._refresh_payments(order_id)
        return redirect(url_for("shop.order", order_id=order_id), 303)

    def order(self, order_id: str) -> str:
        return render_template("order.html", **self._template_values(order_id))

    def progress(self, order_id: str) -> str:
        """Return the part of the page that changes, for the script of the page."""
        return render_template("progress.html", **self._template_values(order_id))

    def _redirect_to_checkout(self, order_id: str, reference: str) -> ResponseReturnValue:
        to_order = redirect(url_for("shop.order", order_id=order_id), 303)
        try:
            payment = self.checkout.create_intent(reference)
        except MizanUnavailableError:
            return to_order
        if payment.status is not PaymentStatus.REQUIRES_PAYMENT_METHOD:
            return to_order
        self.checkout.record_departure(payment)
        return redirect(checkout_url(payment, g.lang), 303)

    def _refresh_payments(self, order_id: str) -> bool:
        """Check all payments that can still be paid. Return False if Mizan could not tell; the worker tries again."""
        with self.database.reading() as connection:
            payments = list_payments(connection, order_id)
        is_certain = True
        for payment in reversed(payments):
            if payment.uuid is None or payment.status.is_final:
                continue
            try:
                self.settlement.refresh(payment)
            except INTENT_NOT_FOUND:
                is_certain = False
            except MizanUnavailableError:
                # Do not keep the customer waiting for the other payments.
                return False
        return is_certain

    def _form_order_id(self, lines: tuple[Line, ...]) -> str:
        """Return the id in the form, or a new one if that order exists with other lines."""
        form_id = request.form.get("order", "")
        if not _ORDER_ID.fullmatch(form_id):
            return secrets.token_urlsafe(16)
        with self.database.reading() as connection:
            known = find_order(connection, form_id)
        return form_id if known is None or known.lines == lines else secrets.token_urlsafe(16)

    def _latest(self, order_id: str) -> tuple[Order, Payment]:
        with self.database.reading() as connection:
            order = find_order(connection, order_id)
            if order is None:
                abort(404)
            return order, list_payments(connection, order_id)[-1]

    def _template_values(self, order_id: str) -> dict[str, object]:
        order, latest = self._latest(order_id)
        with self.database.reading() as connection:
            journal = list_entries(connection, order_id)
        return {
            "order": order,
            "payment": latest,
            "state": order_state(order, latest),
            "steps": step_progress(order, latest, journal),
            "journal": journal,
        }


def shop_blueprint(pages: ShopPages) -> Blueprint:
    blueprint = Blueprint("shop", __name__)
    blueprint.get("/", endpoint="menu")(pages.menu)
    blueprint.post("/orders", endpoint="place_order")(pages.place_order)
    blueprint.get("/orders/<order_id>", endpoint="order")(pages.order)
    blueprint.get("/orders/<order_id>/progress", endpoint="progress")(pages.progress)
    blueprint.get("/orders/<order_id>/return", endpoint="handle_return")(pages.handle_return)
    blueprint.post("/orders/<order_id>/pay", endpoint="pay")(pages.pay)
    return blueprint

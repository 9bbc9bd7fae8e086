"""The customers' pages: the menu, and the page of an order, which shows each step as it happens."""

import re
import secrets
import time
from dataclasses import dataclass

from flask import Blueprint, abort, flash, g, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from examples.shop.database import Database
from examples.shop.journal import Step, enter, entries_of
from examples.shop.mizan_api import MizanAwayError, NoSuchIntentError
from examples.shop.orders import Order, find_order
from examples.shop.paying import Till, checkout_address
from examples.shop.payments import Payment, Status, payments_of
from examples.shop.products import MOST_OF_ONE, PRODUCTS, Line, NothingChosenError, lines_chosen
from examples.shop.progress import stages, state_of
from examples.shop.settling import Books

_ORDER_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, slots=True)
class Counter:
    database: Database
    till: Till
    books: Books

    def menu(self, *, nothing_chosen: bool = False) -> str:
        # The form carries the id of the order that it makes, so a double click makes one.
        return render_template(
            "menu.html",
            products=PRODUCTS,
            most=MOST_OF_ONE,
            order_id=secrets.token_urlsafe(16),
            nothing_chosen=nothing_chosen,
        )

    def take_order(self) -> ResponseReturnValue:
        try:
            lines = lines_chosen(request.form.to_dict())
        except NothingChosenError:
            return self.menu(nothing_chosen=True), 422
        order_id = self._wished_id(lines)
        reference = self.till.take_order(order_id, lines, g.lang)
        if reference is None:
            return redirect(url_for("shop.order", order_id=order_id), 303)
        return self._to_checkout(order_id, reference)

    def pay(self, order_id: str) -> ResponseReturnValue:
        """The way to the checkout from the order's page; for one that has expired, with a new payment."""
        # Any of them may have expired, or been paid, since we last heard of it; an expired one may have been paid late.
        is_sure = self._look_at_all(order_id)
        order, payment = self._latest(order_id)
        to_order = redirect(url_for("shop.order", order_id=order_id), 303)
        if order.fulfilled_at is not None or payment.status.is_over:
            return to_order
        if not is_sure:
            flash("mizan_is_away")
            return to_order
        if payment.status is Status.CANCELED:
            return self._to_checkout(order_id, self.till.begin_anew(order))
        return self._to_checkout(order_id, payment.reference)

    def come_back(self, order_id: str) -> ResponseReturnValue:
        """return_url: being here proves nothing, so Mizan is asked (§6.5, 5)."""
        _, payment = self._latest(order_id)
        with self.database.transaction() as connection:
            enter(connection, order_id, payment.reference, Step.RETURNED, time.time())
        self._look_at_all(order_id)
        return redirect(url_for("shop.order", order_id=order_id), 303)

    def order(self, order_id: str) -> str:
        return render_template("order.html", **self._facts(order_id))

    def progress(self, order_id: str) -> str:
        """The part of the page that changes, for its script."""
        return render_template("progress.html", **self._facts(order_id))

    def _to_checkout(self, order_id: str, reference: str) -> ResponseReturnValue:
        to_order = redirect(url_for("shop.order", order_id=order_id), 303)
        try:
            payment = self.till.ask_for_intent(reference)
        except MizanAwayError:
            return to_order
        if payment.status is not Status.REQUIRES_PAYMENT_METHOD:
            return to_order
        self.till.note_leaving(payment)
        return redirect(checkout_address(payment, g.lang), 303)

    def _look_at_all(self, order_id: str) -> bool:
        """Whether Mizan has told of each payment that can still be paid; where it has not, the worker asks again."""
        with self.database.reading() as connection:
            payments = payments_of(connection, order_id)
        is_sure = True
        for payment in reversed(payments):
            if payment.uuid is None or payment.status.is_over:
                continue
            try:
                self.books.look_at(payment)
            except NoSuchIntentError:
                is_sure = False
            except MizanAwayError:
                # Nobody is kept waiting for one more that will not answer either.
                return False
        return is_sure

    def _wished_id(self, lines: tuple[Line, ...]) -> str:
        """Going back and choosing something else makes another order."""
        wished = request.form.get("order", "")
        if not _ORDER_ID.fullmatch(wished):
            return secrets.token_urlsafe(16)
        with self.database.reading() as connection:
            known = find_order(connection, wished)
        return wished if known is None or known.lines == lines else secrets.token_urlsafe(16)

    def _latest(self, order_id: str) -> tuple[Order, Payment]:
        with self.database.reading() as connection:
            order = find_order(connection, order_id)
            if order is None:
                abort(404)
            return order, payments_of(connection, order_id)[-1]

    def _facts(self, order_id: str) -> dict[str, object]:
        order, latest = self._latest(order_id)
        with self.database.reading() as connection:
            journal = entries_of(connection, order_id)
        return {
            "order": order,
            "payment": latest,
            "state": state_of(order, latest),
            "stages": stages(order, latest, journal),
            "journal": journal,
        }


def shop_blueprint(counter: Counter) -> Blueprint:
    blueprint = Blueprint("shop", __name__)
    blueprint.get("/", endpoint="menu")(counter.menu)
    blueprint.post("/orders", endpoint="take_order")(counter.take_order)
    blueprint.get("/orders/<order_id>", endpoint="order")(counter.order)
    blueprint.get("/orders/<order_id>/progress", endpoint="progress")(counter.progress)
    blueprint.get("/orders/<order_id>/return", endpoint="come_back")(counter.come_back)
    blueprint.post("/orders/<order_id>/pay", endpoint="pay")(counter.pay)
    return blueprint

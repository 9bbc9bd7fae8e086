"""From an order to the checkout: the intent is created, and the customer sent to its page (§1, steps 1 and 2)."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from examples.shop import words
from examples.shop.database import Database
from examples.shop.journal import Step, enter
from examples.shop.mizan_api import Intent, MizanApi, MizanAwayError, RefusedError
from examples.shop.orders import Order, find_order, place_order
from examples.shop.pauses import after_no_answer, next_look
from examples.shop.payments import (
    Payment,
    Status,
    add_payment,
    ask_later,
    find_payment,
    payments_of,
    set_intent,
    set_status,
)
from examples.shop.products import Line

_PAY_WITHIN = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Till:
    database: Database
    api: MizanApi
    public_url: str

    def take_order(self, order_id: str, lines: tuple[Line, ...], lang: str) -> str | None:
        """The reference of its first payment; None when this very order was taken before, by a double click.

        Order and payment are written down before Mizan is called: killed at any point, we know what was begun.
        """
        now = time.time()
        with self.database.transaction() as connection:
            if find_order(connection, order_id) is not None:
                return None
            place_order(connection, order_id, lines, lang=lang, at=now)
            order = find_order(connection, order_id)
            assert order is not None
            payment = add_payment(connection, order, now)
            enter(connection, order.id, payment.reference, Step.CART, now)
        return payment.reference

    def begin_anew(self, order: Order) -> str:
        """A second payment, with a new reference; two clicks begin one, and none if the order was paid meanwhile."""
        now = time.time()
        with self.database.transaction() as connection:
            latest, current = payments_of(connection, order.id)[-1], find_order(connection, order.id)
            assert current is not None
            if latest.status is not Status.CANCELED or current.fulfilled_at is not None:
                return latest.reference
            payment = add_payment(connection, order, now)
            enter(connection, order.id, payment.reference, Step.CART, now)
        return payment.reference

    def ask_for_intent(self, reference: str) -> Payment:
        """Asks Mizan for the intent of a payment. If there is no answer it is asked for again: same reference, same
        intent, however often (§4.1)."""
        with self.database.reading() as connection:
            payment = find_payment(connection, reference)
            order = find_order(connection, payment.order_id)
        assert order is not None
        if payment.status is not Status.WANTED:
            return payment
        try:
            intent = self.api.create(self._wish(order, payment))
        except MizanAwayError as error:
            self._note_away(payment, error)
            raise
        except RefusedError as error:
            self._note_refused(payment, error)
        else:
            self._note_intent(order, payment, intent)
        with self.database.reading() as connection:
            return find_payment(connection, reference)

    def _wish(self, order: Order, payment: Payment) -> dict[str, object]:
        return {
            "merchant_reference": payment.reference,
            "amount": payment.amount,
            "currency": payment.currency,
            "description": words.list_of(order.lines, order.lang),
            # Nothing is added to it (§4.1), so it carries the order's id, which nobody can guess.
            "return_url": f"{self.public_url}/orders/{order.id}/return",
            "metadata": {"order": str(order.number)},
            # From now, not from the first try: a repeat's is ignored, but a late first one must lie ahead.
            "expires_at": (datetime.now(UTC) + _PAY_WITHIN).isoformat(),
        }

    def _note_intent(self, order: Order, payment: Payment, intent: Intent) -> None:
        now = time.time()
        # A repeat finds the intent as it was created: the amount has to be compared (§4.1, rule 4).
        fits = (intent.amount, intent.currency) == (order.amount, order.currency)
        status = Status(intent.status) if fits else Status.DOUBTFUL
        with self.database.transaction() as connection:
            if find_payment(connection, payment.reference).uuid is not None:
                return
            set_intent(connection, payment.reference, intent.uuid, intent.checkout_url, intent.expires_at)
            # A repeat may find it paid or canceled already (§4.1, rule 2): looking again settles that.
            look_at = now if status in (Status.SUCCEEDED, Status.CANCELED) else None
            known = Status.REQUIRES_PAYMENT_METHOD if look_at else status
            ask_at = look_at or next_look(known, intent.expires_at, 0, now)
            set_status(connection, payment.reference, known, ask_at)
            step = Step.INTENT_CREATED if fits else Step.MISMATCH
            enter(connection, order.id, payment.reference, step, now, uuid=intent.uuid)

    def _note_away(self, payment: Payment, error: MizanAwayError) -> None:
        now = time.time()
        with self.database.transaction() as connection:
            if payment.asked == 0:
                enter(connection, payment.order_id, payment.reference, Step.MIZAN_AWAY, now, why=str(error))
            ask_later(connection, payment.reference, now + after_no_answer(payment.asked))

    def _note_refused(self, payment: Payment, error: RefusedError) -> None:
        with self.database.transaction() as connection:
            set_status(connection, payment.reference, Status.REFUSED, None)
            enter(connection, payment.order_id, payment.reference, Step.REFUSED, time.time(), why=str(error))

    def note_leaving(self, payment: Payment) -> None:
        """The customer is on the way to the checkout."""
        with self.database.transaction() as connection:
            enter(connection, payment.order_id, payment.reference, Step.AT_CHECKOUT, time.time())


def checkout_address(payment: Payment, lang: str) -> str:
    """As given; Arabic is its default, and lang=en makes it English (§4.3)."""
    assert payment.checkout_url is not None
    if lang != "en":
        return payment.checkout_url
    return f"{payment.checkout_url}{'&' if '?' in payment.checkout_url else '?'}lang=en"

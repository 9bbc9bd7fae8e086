"""Starts a payment: creates the intent and sends the customer to the checkout page."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mizan_client import InvalidRequestError, PaymentIntent

from . import texts
from .database import Database
from .mizan_api import MizanApi, MizanUnavailableError, to_timestamp
from .orders import Line, Order, find_order, place_order
from .payments import (
    Payment,
    PaymentStatus,
    add_payment,
    find_payment,
    list_payments,
    next_check,
    reschedule_check,
    retry_delay,
    set_intent,
    set_status,
)
from .progress import Step, add_entry

_PAY_WITHIN = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Checkout:
    database: Database
    api: MizanApi
    public_url: str

    def take_order(self, order_id: str, lines: tuple[Line, ...], lang: str) -> str | None:
        """Store the order and its first payment. Return the payment's reference, or None if the order exists already.

        Both are stored before Mizan is called, so that a shop killed at any point knows what it had started.
        """
        now = time.time()
        with self.database.transaction() as connection:
            if find_order(connection, order_id) is not None:
                return None
            place_order(connection, order_id, lines, lang=lang, at=now)
            order = find_order(connection, order_id)
            assert order is not None
            payment = add_payment(connection, order, now)
            add_entry(connection, order.id, payment.reference, Step.CART, now)
        return payment.reference

    def start_new_payment(self, order: Order) -> str:
        """Add a payment with a new reference to an expired order, and return the reference.

        If the latest payment has not expired, or the order was fulfilled meanwhile, return the latest reference. So a
        double click adds one payment.
        """
        now = time.time()
        with self.database.transaction() as connection:
            latest, current = list_payments(connection, order.id)[-1], find_order(connection, order.id)
            assert current is not None
            if latest.status is not PaymentStatus.CANCELED or current.fulfilled_at is not None:
                return latest.reference
            payment = add_payment(connection, order, now)
            add_entry(connection, order.id, payment.reference, Step.CART, now)
        return payment.reference

    def create_intent(self, reference: str) -> Payment:
        """Create the intent of a payment at Mizan. Repeats are safe: the same reference yields the same intent.

        Raises MizanUnavailableError if there is no usable response; the worker tries again.
        """
        with self.database.reading() as connection:
            payment = find_payment(connection, reference)
            order = find_order(connection, payment.order_id)
        assert order is not None
        if payment.status is not PaymentStatus.WANTED:
            return payment
        try:
            intent = self._send_create(order, payment)
        except MizanUnavailableError as error:
            self._record_unavailable(payment, error)
            raise
        except InvalidRequestError as error:
            self._record_refusal(payment, error)
        else:
            self._record_intent(order, payment, intent)
        with self.database.reading() as connection:
            return find_payment(connection, reference)

    def _send_create(self, order: Order, payment: Payment) -> PaymentIntent:
        with self.api.client(InvalidRequestError) as client:
            return client.create_payment_intent(
                payment.reference,
                payment.amount,
                currency=payment.currency,
                description=texts.describe_lines(order.lines, order.lang),
                # Mizan adds nothing to it, so it contains the unguessable id of the order.
                return_url=f"{self.public_url}/orders/{order.id}/return",
                metadata={"order": str(order.number)},
                # Counted from now: Mizan ignores it in a repeat, but a delayed first request needs a time that is
                # in the future.
                expires_at=datetime.now(UTC) + _PAY_WITHIN,
            )

    def _record_intent(self, order: Order, payment: Payment, intent: PaymentIntent) -> None:
        now, expires_at = time.time(), to_timestamp(intent.expires_at)
        # A repeat returns the intent as it was created, so compare the amount.
        matches = (intent.amount, intent.currency) == (order.amount, order.currency)
        status = PaymentStatus(intent.status) if matches else PaymentStatus.DOUBTFUL
        with self.database.transaction() as connection:
            if find_payment(connection, payment.reference).uuid is not None:
                return
            set_intent(connection, payment.reference, intent.uuid, intent.checkout_url, expires_at)
            # A repeat may return a paid or canceled intent. A check right away settles it.
            check_at = now if status in (PaymentStatus.SUCCEEDED, PaymentStatus.CANCELED) else None
            known = PaymentStatus.REQUIRES_PAYMENT_METHOD if check_at else status
            ask_at = check_at or next_check(known, expires_at, 0, now)
            set_status(connection, payment.reference, known, ask_at)
            step = Step.INTENT_CREATED if matches else Step.MISMATCH
            add_entry(connection, order.id, payment.reference, step, now, uuid=intent.uuid)

    def _record_unavailable(self, payment: Payment, error: MizanUnavailableError) -> None:
        now = time.time()
        with self.database.transaction() as connection:
            if payment.asked == 0:
                add_entry(
                    connection, payment.order_id, payment.reference, Step.MIZAN_AWAY, now, why=str(error)
                )
            reschedule_check(connection, payment.reference, now + retry_delay(payment.asked))

    def _record_refusal(self, payment: Payment, error: InvalidRequestError) -> None:
        with self.database.transaction() as connection:
            set_status(connection, payment.reference, PaymentStatus.REFUSED, None)
            add_entry(
                connection,
                payment.order_id,
                payment.reference,
                Step.REFUSED,
                time.time(),
                why=str(error)[:300],
            )

    def record_departure(self, payment: Payment) -> None:
        """Record that the customer was sent to the checkout."""
        with self.database.transaction() as connection:
            add_entry(connection, payment.order_id, payment.reference, Step.AT_CHECKOUT, time.time())


def checkout_url(payment: Payment, lang: str) -> str:
    """Return the intent's checkout_url, with lang=en for English. Arabic is the default."""
    assert payment.checkout_url is not None
    if lang != "en":
        return payment.checkout_url
    return f"{payment.checkout_url}{'&' if '?' in payment.checkout_url else '?'}lang=en"

"""What became of a payment: Mizan is asked, its answer compared with the order, the order fulfilled once (§6.5, 4)."""

import sqlite3
import time
from dataclasses import dataclass

from examples.shop.database import Database
from examples.shop.inbox import Webhook, is_journalled, mark_done, work_later
from examples.shop.journal import Step, enter
from examples.shop.mizan_api import Intent, MizanApi, MizanAwayError, NoSuchIntentError
from examples.shop.orders import find_order, fulfil
from examples.shop.pauses import after_no_answer, next_late_look, next_look
from examples.shop.payments import (
    Payment,
    Status,
    ask_later,
    known_payment,
    payment_of_intent,
    set_canceled,
    set_intent,
    set_status,
)


@dataclass(frozen=True, slots=True)
class Books:
    database: Database
    api: MizanApi

    def work_on(self, webhook: Webhook) -> None:
        """The body of a webhook says neither amount nor status: all it is good for is to make us ask (§2.2).

        Marked as done together with what it led to, in one transaction: killed before, we do it again; after, never.
        """
        try:
            intent = self.api.retrieve(webhook.uuid)
        except (MizanAwayError, NoSuchIntentError) as error:
            with self.database.transaction() as connection:
                is_ours = payment_of_intent(connection, webhook.uuid) is not None
                if isinstance(error, NoSuchIntentError) and not is_ours:
                    # A test from the dashboard has a uuid that nobody has.
                    mark_done(connection, webhook.id)
                    return
                work_later(connection, webhook.id, time.time() + after_no_answer(webhook.tried))
            raise
        with self.database.transaction() as connection:
            payment = known_payment(connection, intent.merchant_reference)
            if payment is not None:
                if not is_journalled(connection, payment.order_id, webhook.id):
                    note_webhook(connection, payment, webhook)
                settle(connection, payment, intent)
            mark_done(connection, webhook.id)

    def look_at(self, payment: Payment) -> None:
        """Without a webhook: when the customer returns, and when an order is still unpaid after its time (§6.5, 5)."""
        assert payment.uuid is not None
        try:
            intent = self.api.retrieve(payment.uuid)
        except (MizanAwayError, NoSuchIntentError):
            with self.database.transaction() as connection:
                ask_later(connection, payment.reference, time.time() + after_no_answer(payment.asked))
            raise
        with self.database.transaction() as connection:
            payment = known_payment(connection, payment.reference) or payment
            settle(connection, payment, intent)


def note_webhook(connection: sqlite3.Connection, payment: Payment, webhook: Webhook) -> None:
    enter(
        connection,
        payment.order_id,
        payment.reference,
        Step.WEBHOOK,
        webhook.received_at,
        id=webhook.id,
        event=webhook.event,
    )


def settle(connection: sqlite3.Connection, payment: Payment, intent: Intent) -> None:
    """Takes in what Mizan has just said. The same said twice, or older news after newer, changes nothing."""
    now = time.time()
    if payment.uuid is None:
        # The answer to our create was lost, and this is how we hear of the intent.
        set_intent(connection, payment.reference, intent.uuid, intent.checkout_url, intent.expires_at)
    news = Status(intent.status)
    if payment.status.is_over:
        ask_later(connection, payment.reference, None)
        return
    if payment.status is Status.CANCELED and news is not Status.SUCCEEDED:
        assert payment.canceled_at is not None
        ask_at = next_late_look(payment.canceled_at, now)
        set_status(connection, payment.reference, Status.CANCELED, ask_at)
        return
    if news is payment.status:
        ask_at = next_look(news, intent.expires_at, payment.asked, now)
        ask_later(connection, payment.reference, ask_at)
        return
    if news is Status.SUCCEEDED:
        _settle_paid(connection, payment, intent, now)
        return
    if news is Status.CANCELED:
        set_canceled(connection, payment.reference, now, next_late_look(now, now))
        enter(connection, payment.order_id, payment.reference, Step.EXPIRED, now)
        return
    set_status(connection, payment.reference, news, next_look(news, intent.expires_at, 0, now))


def _settle_paid(connection: sqlite3.Connection, payment: Payment, intent: Intent, now: float) -> None:
    order = find_order(connection, payment.order_id)
    assert order is not None
    enter(connection, order.id, payment.reference, Step.PAID, intent.updated_at or now)
    # Fulfilled only if what was paid is what the order costs, in its currency (§6.5, 4).
    if (intent.amount, intent.currency) != (order.amount, order.currency):
        set_status(connection, payment.reference, Status.DOUBTFUL, None)
        said = f"{intent.amount} {intent.currency}"
        enter(connection, order.id, payment.reference, Step.MISMATCH, now, said=said)
        return
    set_status(connection, payment.reference, Status.SUCCEEDED, None)
    enter(connection, order.id, payment.reference, Step.COMPARED, now)
    if fulfil(connection, order.id, payment.reference, now):
        enter(connection, order.id, payment.reference, Step.FULFILLED, now)
    else:
        # An expired payment that was verified late (§3), after the order had been paid anew: money to give back.
        enter(connection, order.id, payment.reference, Step.PAID_TWICE, now)

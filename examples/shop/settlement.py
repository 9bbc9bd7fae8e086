"""Settles payments: asks Mizan, compares the intent with the order, and fulfils the order once."""

import sqlite3
import time
from dataclasses import dataclass

from mizan_client import PaymentIntent

from .database import Database
from .mizan_api import INTENT_NOT_FOUND, MizanApi, MizanUnavailableError, to_timestamp
from .orders import find_order, fulfil_order
from .payments import (
    Payment,
    PaymentStatus,
    find_payment_of_intent,
    find_payment_or_none,
    next_check,
    next_late_check,
    reschedule_check,
    retry_delay,
    set_canceled,
    set_intent,
    set_status,
)
from .progress import Step, add_entry
from .webhook_inbox import Webhook, is_in_journal, mark_done, reschedule_webhook


@dataclass(frozen=True, slots=True)
class Settlement:
    database: Database
    api: MizanApi

    def process_webhook(self, webhook: Webhook) -> None:
        """Retrieve the intent of a webhook and settle its payment. The webhook itself has no amount or status.

        One transaction settles the payment and marks the webhook as done, so a killed shop processes it exactly once.
        Raises MizanUnavailableError or an error of INTENT_NOT_FOUND after rescheduling the webhook.
        """
        try:
            intent = self._retrieve(webhook.uuid)
        except (MizanUnavailableError, *INTENT_NOT_FOUND) as error:
            with self.database.transaction() as connection:
                is_ours = find_payment_of_intent(connection, webhook.uuid) is not None
                if isinstance(error, INTENT_NOT_FOUND) and not is_ours:
                    # A test delivery from the dashboard has a uuid that does not exist.
                    mark_done(connection, webhook.id)
                    return
                reschedule_webhook(connection, webhook.id, time.time() + retry_delay(webhook.tried))
            raise
        with self.database.transaction() as connection:
            payment = find_payment_or_none(connection, intent.merchant_reference or "")
            if payment is not None:
                if not is_in_journal(connection, payment.order_id, webhook.id):
                    record_webhook(connection, payment, webhook)
                settle_payment(connection, payment, intent)
            mark_done(connection, webhook.id)

    def refresh(self, payment: Payment) -> None:
        """Settle the payment without a webhook: when the customer returns, and after expiry.

        Raises MizanUnavailableError or an error of INTENT_NOT_FOUND after rescheduling the check.
        """
        assert payment.uuid is not None
        try:
            intent = self._retrieve(payment.uuid)
        except (MizanUnavailableError, *INTENT_NOT_FOUND):
            with self.database.transaction() as connection:
                reschedule_check(connection, payment.reference, time.time() + retry_delay(payment.asked))
            raise
        with self.database.transaction() as connection:
            payment = find_payment_or_none(connection, payment.reference) or payment
            settle_payment(connection, payment, intent)

    def _retrieve(self, uuid: str) -> PaymentIntent:
        with self.api.client(*INTENT_NOT_FOUND) as client:
            return client.retrieve_payment_intent(uuid)


def record_webhook(connection: sqlite3.Connection, payment: Payment, webhook: Webhook) -> None:
    add_entry(
        connection,
        payment.order_id,
        payment.reference,
        Step.WEBHOOK,
        webhook.received_at,
        id=webhook.id,
        event=webhook.event,
    )


def settle_payment(connection: sqlite3.Connection, payment: Payment, intent: PaymentIntent) -> None:
    """Apply the status of the intent to the payment. A repeated or outdated status changes nothing."""
    now, expires_at = time.time(), to_timestamp(intent.expires_at)
    if payment.uuid is None:
        # The response to our create request was lost, so this is how we learn of the intent.
        set_intent(connection, payment.reference, intent.uuid, intent.checkout_url, expires_at)
    status = PaymentStatus(intent.status)
    if payment.status.is_final:
        reschedule_check(connection, payment.reference, None)
        return
    if payment.status is PaymentStatus.CANCELED and status is not PaymentStatus.SUCCEEDED:
        assert payment.canceled_at is not None
        ask_at = next_late_check(payment.canceled_at, now)
        set_status(connection, payment.reference, PaymentStatus.CANCELED, ask_at)
        return
    if status is payment.status:
        ask_at = next_check(status, expires_at, payment.asked, now)
        reschedule_check(connection, payment.reference, ask_at)
        return
    if status is PaymentStatus.SUCCEEDED:
        _settle_paid(connection, payment, intent, now)
        return
    if status is PaymentStatus.CANCELED:
        set_canceled(connection, payment.reference, now, next_late_check(now, now))
        add_entry(connection, payment.order_id, payment.reference, Step.EXPIRED, now)
        return
    set_status(connection, payment.reference, status, next_check(status, expires_at, 0, now))


def _settle_paid(connection: sqlite3.Connection, payment: Payment, intent: PaymentIntent, now: float) -> None:
    order = find_order(connection, payment.order_id)
    assert order is not None
    add_entry(connection, order.id, payment.reference, Step.PAID, to_timestamp(intent.updated_at) or now)
    # Fulfil only if amount and currency match the order.
    if (intent.amount, intent.currency) != (order.amount, order.currency):
        set_status(connection, payment.reference, PaymentStatus.DOUBTFUL, None)
        paid = f"{intent.amount} {intent.currency}"
        add_entry(connection, order.id, payment.reference, Step.MISMATCH, now, said=paid)
        return
    set_status(connection, payment.reference, PaymentStatus.SUCCEEDED, None)
    add_entry(connection, order.id, payment.reference, Step.COMPARED, now)
    if fulfil_order(connection, order.id, payment.reference, now):
        add_entry(connection, order.id, payment.reference, Step.FULFILLED, now)
    else:
        # An expired payment succeeded late, after another payment had fulfilled the order: refund it.
        add_entry(connection, order.id, payment.reference, Step.PAID_TWICE, now)

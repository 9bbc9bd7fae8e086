"""The worker thread: processes stored webhooks, creates intents, and checks unpaid orders.

All its work is stored in SQLite, so a killed shop continues where it was. Two workers would not disturb each other.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from .checkout import Checkout
from .database import Database
from .mizan_api import INTENT_NOT_FOUND, MizanUnavailableError
from .payments import Payment, due_payments, reschedule_check
from .settlement import Settlement
from .webhook_inbox import due_webhooks, reschedule_webhook

_POLL_INTERVAL_S = 0.5
_ERROR_RETRY_DELAY_S = 300.0
_log = logging.getLogger(__name__)


@dataclass
class Worker:
    database: Database
    checkout: Checkout
    settlement: Settlement
    _wake: Event = field(default_factory=Event)
    _stopping: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Start a round now instead of at the next poll."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(10)

    def work(self) -> None:
        """Run one round. If Mizan is unavailable, the rest of the round waits: each item has its own next time."""
        now = time.time()
        with self.database.reading() as connection:
            webhooks, payments = due_webhooks(connection, now), due_payments(connection, now)
        try:
            for webhook in webhooks:
                with self._isolated(reschedule_webhook, webhook.id):
                    self.settlement.process_webhook(webhook)
            for payment in payments:
                with self._isolated(reschedule_check, payment.reference):
                    self._check(payment)
        except MizanUnavailableError as error:
            _log.warning("%s; trying again later", error)

    @contextmanager
    def _isolated(self, later: Callable[[sqlite3.Connection, str, float], None], name: str) -> Iterator[None]:
        """Keep the error of one item from stopping the others, unless Mizan is unavailable for all."""
        try:
            yield
        except MizanUnavailableError:
            raise
        except INTENT_NOT_FOUND:
            _log.warning("Mizan does not find the intent of our payment %s; trying again later", name)
        except Exception:  # noqa: BLE001  a loop's edge
            # A bug of ours; the other items do not wait for it.
            _log.exception("%s could not be processed", name)
            with self.database.transaction() as connection:
                later(connection, name, time.time() + _ERROR_RETRY_DELAY_S)

    def _check(self, payment: Payment) -> None:
        if payment.uuid is None:
            self.checkout.create_intent(payment.reference)
        else:
            self.settlement.refresh(payment)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_POLL_INTERVAL_S)
            self._wake.clear()
            try:
                self.work()
            except Exception:  # noqa: BLE001  a loop's edge
                _log.exception("a round of the worker failed; the next one follows")

"""The thread that does the work behind the answers: webhooks that came in, intents to ask for, orders to look at again.

All it has to do is written in SQLite, so a killed shop goes on where it was. Two of them would do each other no harm.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from examples.shop.database import Database
from examples.shop.inbox import due_webhooks, work_later
from examples.shop.mizan_api import MizanAwayError, NoSuchIntentError
from examples.shop.paying import Till
from examples.shop.payments import Payment, ask_later, due_payments
from examples.shop.settling import Books

_LOOK_EVERY_S = 0.5
_AFTER_A_FAULT_S = 300.0
_log = logging.getLogger(__name__)


@dataclass
class Worker:
    database: Database
    till: Till
    books: Books
    _wake: Event = field(default_factory=Event)
    _stopping: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="worker", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to do now."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(10)

    def work(self) -> None:
        """One round. When Mizan is away the rest of the round waits with it: each item has its own next time."""
        now = time.time()
        with self.database.reading() as connection:
            webhooks, payments = due_webhooks(connection, now), due_payments(connection, now)
        try:
            for webhook in webhooks:
                with self._apart(work_later, webhook.id):
                    self.books.work_on(webhook)
            for payment in payments:
                with self._apart(ask_later, payment.reference):
                    self._ask(payment)
        except MizanAwayError as error:
            _log.warning("%s; it is asked again later", error)

    @contextmanager
    def _apart(self, later: Callable[[sqlite3.Connection, str, float], None], name: str) -> Iterator[None]:
        """The trouble of one is not that of the others, unless Mizan is away for all."""
        try:
            yield
        except MizanAwayError:
            raise
        except NoSuchIntentError:
            _log.warning("Mizan does not find the intent of %s, which is ours; it is asked again later", name)
        except Exception:  # noqa: BLE001  a loop's edge
            # Ours to mend; meanwhile the others are not kept waiting behind it.
            _log.exception("%s could not be worked on", name)
            with self.database.transaction() as connection:
                later(connection, name, time.time() + _AFTER_A_FAULT_S)

    def _ask(self, payment: Payment) -> None:
        if payment.uuid is None:
            self.till.ask_for_intent(payment.reference)
        else:
            self.books.look_at(payment)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_LOOK_EVERY_S)
            self._wake.clear()
            try:
                self.work()
            except Exception:  # noqa: BLE001  a loop's edge
                _log.exception("the worker's round failed; it goes on with the next")

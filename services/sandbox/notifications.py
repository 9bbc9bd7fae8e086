"""Sends notifications: once while the caller waits, then with retries in the background. A restart resumes them."""

from threading import Thread
from time import sleep

import structlog
from requests import RequestException
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt

from services.sandbox.charges import SIGNATURE_HEADER, ChargeNotification, sign
from services.sandbox.ledger import Ledger
from shared.platform.backoff import backoff_delay
from shared.platform.http_session import open_http_session

TIMEOUT_S = 5.0
MAX_RETRIES = 8

log = structlog.get_logger(__name__)


class NotificationSender:
    def __init__(self, ledger: Ledger, secret: str) -> None:
        self._ledger = ledger
        self._secret = secret

    def send(self, notification: ChargeNotification) -> bool:
        """Send a notification. Return whether the first try was accepted; if not, it is retried in the background."""
        if self._deliver(notification):
            return True
        self._retry_in_background(notification)
        return False

    def resume_pending(self) -> None:
        """Retry notifications that an earlier process left pending."""
        with self._ledger.transaction() as transaction:
            pending = transaction.find_pending()
        for notification in pending:
            self._retry_in_background(notification)

    def _retry_in_background(self, notification: ChargeNotification) -> None:
        Thread(target=self._retry, args=(notification,), name="notification", daemon=True).start()

    def _retry(self, notification: ChargeNotification) -> None:
        sleep(backoff_delay(1))
        retrying = Retrying(
            stop=stop_after_attempt(MAX_RETRIES),
            wait=_pause,
            retry=retry_if_result(lambda is_delivered: not is_delivered),
            retry_error_callback=lambda _: self._give_up(notification),
        )
        retrying(self._deliver, notification)

    def _deliver(self, notification: ChargeNotification) -> bool:
        problem = self._post(notification)
        if problem:
            log.warning(
                "notification not accepted",
                notification=notification.id,
                charge=notification.charge,
                problem=problem,
            )
            return False
        with self._ledger.transaction() as transaction:
            transaction.mark_delivered(notification.id)
        return True

    def _post(self, notification: ChargeNotification) -> str | None:
        """Post the notification and return what went wrong, or None."""
        body = notification.body.encode()
        headers = {
            "Content-Type": "application/json",
            "Connection": "close",
            SIGNATURE_HEADER: sign(body, self._secret),
        }
        with open_http_session() as session:
            try:
                with session.post(
                    notification.url,
                    data=body,
                    headers=headers,
                    timeout=TIMEOUT_S,
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    return None if 200 <= response.status_code < 300 else f"status {response.status_code}"
            except RequestException as error:
                return type(error).__name__

    def _give_up(self, notification: ChargeNotification) -> None:
        log.error("notification given up", notification=notification.id, charge=notification.charge)
        with self._ledger.transaction() as transaction:
            transaction.mark_given_up(notification.id)


def _pause(state: RetryCallState) -> float:
    return backoff_delay(state.attempt_number + 1)

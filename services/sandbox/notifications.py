"""Sends notifications: once while the caller waits, then in the background. A restart takes up what is left."""

from threading import Thread
from time import sleep

import structlog
from requests import RequestException, Session
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt

from services.sandbox.charges import SIGNATURE_HEADER, ChargeNotification, sign
from services.sandbox.ledger import Ledger
from shared.platform.backoff import backoff_delay

TIMEOUT_S = 5.0
MAX_RETRIES = 8

log = structlog.get_logger(__name__)


class NotificationSender:
    def __init__(self, ledger: Ledger, secret: str) -> None:
        self._ledger = ledger
        self._secret = secret

    def send(self, notification: ChargeNotification) -> bool:
        """Whether it was taken at the first try; if not, it is repeated."""
        if self._deliver(notification):
            return True
        self._repeat_in_background(notification)
        return False

    def take_up(self) -> None:
        """What an earlier process has written down and not brought to an end."""
        with self._ledger.transaction() as books:
            pending = books.find_pending()
        for notification in pending:
            self._repeat_in_background(notification)

    def _repeat_in_background(self, notification: ChargeNotification) -> None:
        Thread(target=self._repeat, args=(notification,), name="notification", daemon=True).start()

    def _repeat(self, notification: ChargeNotification) -> None:
        sleep(backoff_delay(1))
        repeating = Retrying(
            stop=stop_after_attempt(MAX_RETRIES),
            wait=_pause,
            retry=retry_if_result(lambda is_delivered: not is_delivered),
            retry_error_callback=lambda _: self._give_up(notification),
        )
        repeating(self._deliver, notification)

    def _deliver(self, notification: ChargeNotification) -> bool:
        trouble = self._post(notification)
        if trouble:
            log.warning(
                "notification not taken",
                notification=notification.id,
                charge=notification.charge,
                trouble=trouble,
            )
            return False
        with self._ledger.transaction() as books:
            books.mark_delivered(notification.id)
        return True

    def _post(self, notification: ChargeNotification) -> str | None:
        """What went wrong, if anything did."""
        body = notification.body.encode()
        headers = {
            "Content-Type": "application/json",
            "Connection": "close",
            SIGNATURE_HEADER: sign(body, self._secret),
        }
        with Session() as session:
            # Neither a proxy nor credentials out of somebody's home directory.
            session.trust_env = False
            try:
                with session.post(
                    notification.url,
                    data=body,
                    headers=headers,
                    timeout=TIMEOUT_S,
                    allow_redirects=False,
                    stream=True,
                ) as answer:
                    return None if 200 <= answer.status_code < 300 else f"status {answer.status_code}"
            except RequestException as error:
                return type(error).__name__

    def _give_up(self, notification: ChargeNotification) -> None:
        log.error("notification given up", notification=notification.id, charge=notification.charge)
        with self._ledger.transaction() as books:
            books.mark_given_up(notification.id)


def _pause(state: RetryCallState) -> float:
    return backoff_delay(state.attempt_number + 1)

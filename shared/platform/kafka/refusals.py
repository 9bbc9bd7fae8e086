"""Why Kafka does not answer: remembers the last error of our clients, and keeps refused logins from filling the log.

librdkafka retries a refused login for ever, several times a second. Who waits for an answer only learns that none came.
"""

import logging
from collections.abc import Callable
from time import monotonic

from confluent_kafka import KafkaError

from shared.platform.settings import KafkaSettings

AUTHORIZATION_ERRORS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""An ACL is missing. Once an operator has added it, the same request works."""

_RECENT_S = 5.0
_LOG_EVERY_S = 60.0
_REFUSED_LOGIN = "SASL authentication error"

_errors: dict[tuple[str, str], tuple[float, str]] = {}
"""The last error of the clients with these servers and this user, and when it came."""


def is_fatal(error: KafkaError) -> bool:
    """Return whether the client that had this error has to be replaced.

    Each further call of a client that had a fatal error fails with _FATAL, which is not marked as fatal.
    """
    return error.fatal() or error.code() == KafkaError._FATAL  # noqa: SLF001


def remember_errors(settings: KafkaSettings) -> Callable[[KafkaError], None]:
    """Return the `error_cb` of a client with these settings."""
    key = _key(settings)

    def remember(error: KafkaError) -> None:
        # "All brokers are down" follows the error that says why.
        is_reason = error.code() != KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
        if is_reason or not explain(settings):
            _errors[key] = (monotonic(), error.str())

    return remember


def explain(settings: KafkaSettings) -> str:
    """Return why Kafka does not answer clients with these settings, in brackets; empty if nothing is known.

    Errors of the last seconds count: a client that connects reports none.
    """
    at, text = _errors.get(_key(settings), (float("-inf"), ""))
    if monotonic() - at > _RECENT_S:
        return ""
    user = settings.client.get("sasl.username")
    return f" (as {user}: {text})" if user else f" ({text})"


class RefusedLoginFilter(logging.Filter):
    """Lets one line about refused logins pass in a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._next_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if _REFUSED_LOGIN not in record.getMessage():
            return True
        if monotonic() < self._next_at:
            return False
        self._next_at = monotonic() + _LOG_EVERY_S
        return True


def _key(settings: KafkaSettings) -> tuple[str, str]:
    return settings.bootstrap_servers, settings.client.get("sasl.username", "")

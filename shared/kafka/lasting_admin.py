"""An admin client for a process that lives long.

The client of librdkafka 2.16 learns leaders by asking for topics, and then once: later it goes on asking them with an
epoch that is over, and is refused. And it can lose all its brokers while one of them starts.
"""

from time import monotonic

from confluent_kafka.admin import AdminClient

from shared.kafka import clients
from shared.settings import KafkaSettings

_PATIENCE_S = 30.0


class LastingAdmin:
    """Makes its client anew when it has had no answer for long. For one thread."""

    def __init__(self, settings: KafkaSettings, role: str) -> None:
        self._settings = settings
        self._role = role
        self._client: AdminClient | None = None
        self._answered_at = monotonic()

    def client(self) -> AdminClient:
        """Not to be kept: the next call may give another one, and what the last one was asked stays unanswered."""
        if self._client is None or monotonic() - self._answered_at > _PATIENCE_S:
            self._client = clients.admin(self._settings, self._role)
            self._answered_at = monotonic()
        self._client.poll(0)  # lets it tell what it has to say, which would pile up otherwise
        return self._client

    def answered(self) -> None:
        self._answered_at = monotonic()

    def make_anew(self) -> None:
        """It knows something that is no longer true."""
        self._client = None

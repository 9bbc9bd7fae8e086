"""An admin client for a process that lives long.

The client of librdkafka 2.16 learns leaders by asking for topics, and then once: later it goes on asking them with an
epoch that is over, and is refused. And it can lose all its brokers while one of them starts.
"""

from contextlib import suppress
from time import monotonic

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings

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


_TIMEOUT_S = 1.5


class KafkaReachable:
    """Keeps one client, so that asking often is cheap; one that gets no answer may be asking the only broker that
    gives none, so another is asked in its place."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin: AdminClient | None = None

    def check(self) -> None:
        if self._admin is not None:
            with suppress(KafkaUnavailableError):
                return self._ask(self._admin)
        self._admin = clients.admin(self._settings, "readiness")
        return self._ask(self._admin)

    @staticmethod
    def _ask(admin: AdminClient) -> None:
        admin.poll(0)  # lets it tell what it has to say, which would pile up otherwise
        try:
            admin.describe_cluster(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            raise KafkaUnavailableError(f"no answer: {error}") from error

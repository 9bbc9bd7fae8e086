"""Whether Kafka answers, for /readyz."""

from contextlib import suppress

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from shared.kafka import clients
from shared.kafka.clients import KafkaUnavailableError
from shared.settings import KafkaSettings

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

"""Whether Kafka answers, for /readyz."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from shared.kafka import clients
from shared.kafka.clients import KafkaUnavailableError
from shared.settings import KafkaSettings

_TIMEOUT_S = 1.5


class KafkaReachable:
    """Keeps one connection, so that asking often is cheap."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin: AdminClient | None = None

    def check(self) -> None:
        if self._admin is None:
            self._admin = clients.admin(self._settings, "readiness")
        self._admin.poll(0)  # lets it tell what it has to say, which would pile up otherwise
        try:
            self._admin.describe_cluster(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            raise KafkaUnavailableError(f"no answer: {error}") from error

"""Topics for tests: each test has a prefix of its own. Those that need all topics find them made ahead."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import KafkaSettings

_PATIENCE_S = 2.0

retry_after_restart = retry(
    retry=retry_if_exception_type(KafkaUnavailableError), stop=stop_after_attempt(4), reraise=True
)
"""For a broker that the test before has just restarted."""


def new_prefix() -> str:
    return f"t{uuid4().hex[:8]}."


class TopicSets:
    def __init__(self, settings: KafkaSettings) -> None:
        """`settings`: those of every test, but for the prefix."""
        self.settings = settings
        self._admin = AdminClient(
            {"bootstrap.servers": settings.bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 500}
        )
        self._background = ThreadPoolExecutor(1, "topics")
        self._next: Future[str] | None = None
        self._used: list[str] = []

    def take(self) -> str:
        """Return a prefix whose topics all exist."""
        made, self._next = self._next, None
        prefix = None
        if made is not None:
            with suppress(KafkaUnavailableError):  # the last test has killed the broker at that moment
                prefix = made.result()
        prefix = prefix or self._make()
        self._next = self._background.submit(self._make)
        return prefix

    def give_back(self, prefix: str) -> None:
        """Delete its topics soon: a broker that keeps those of hundreds of tests takes a minute to start again."""
        self._used.append(prefix)
        self._background.submit(self._delete_used)

    def close(self) -> None:
        self._background.shutdown(cancel_futures=True)

    @retry_after_restart
    def _make(self) -> str:
        made = replace(self.settings, topic_prefix=new_prefix())
        ensure_topics(made, ALL_TOPICS)
        return made.topic_prefix

    def _delete_used(self) -> None:
        """Those of a test that has left Kafka stopped are deleted with the next one's."""
        try:
            there = self._admin.list_topics(timeout=_PATIENCE_S).topics
        except KafkaException:
            return
        used, self._used = self._used, []
        if names := [name for name in there if name.startswith(tuple(used))]:
            self._admin.delete_topics(names, operation_timeout=30, request_timeout=30)

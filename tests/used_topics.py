"""Removes the topics of tests that are over: a broker that keeps those of hundreds takes a minute to start again."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_PATIENCE_S = 2.0


class UsedTopics:
    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = AdminClient(
            {"bootstrap.servers": bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 500}
        )
        self._prefixes: list[str] = []

    def remove(self, prefix: str) -> None:
        """Soon; those of a test that has left Kafka away are removed with the next one's."""
        self._prefixes.append(prefix)
        try:
            there = self._admin.list_topics(timeout=_PATIENCE_S).topics
        except KafkaException:
            return
        names = [name for name in there if name.startswith(tuple(self._prefixes))]
        if names:
            self._admin.delete_topics(names, operation_timeout=30, request_timeout=30)
        self._prefixes.clear()

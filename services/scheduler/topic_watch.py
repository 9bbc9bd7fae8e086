"""Makes missing topics, and says loudly when one differs from its definition."""

import logging

from shared.kafka.topic_check import ensure_topics
from shared.settings import KafkaSettings
from shared.topics import ALL_TOPICS

_log = logging.getLogger(__name__)
_EVERY_S = 60.0


class TopicWatch:
    name = "topics"

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def turn(self) -> float:
        for name in ensure_topics(self._settings, ALL_TOPICS):
            _log.warning("topic %s was missing and has been made", name)
        return _EVERY_S

    def close(self) -> None:
        """Holds nothing between two turns."""

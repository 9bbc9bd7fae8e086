"""Makes missing topics, and says loudly when one differs from its definition."""

import logging

from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.topic_setup import ensure_topics
from shared.platform.settings import KafkaSettings

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

"""A dead-letter topic for each test, and the topics that its records came from."""

import pytest

from shared.platform.database.pool import Database
from shared.platform.settings import KafkaSettings
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic


@pytest.fixture
def dead_letter_topic(database: Database, all_topics: KafkaSettings) -> DeadLetterTopic:
    return DeadLetterTopic(database, all_topics)

"""Dead letters of a test's own, and the topics that they came from."""

from collections.abc import Callable, Sequence

import pytest

from shared.db.pool import Database
from shared.settings import KafkaSettings
from shared.topics import Topic
from tests.shared.dead.graveyard import TOPICS, Graveyard


@pytest.fixture
def graveyard(
    database: Database, kafka_settings: KafkaSettings, make_topics: Callable[[Sequence[Topic]], None]
) -> Graveyard:
    make_topics(TOPICS)
    return Graveyard(database, kafka_settings)

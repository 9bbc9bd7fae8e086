"""Dead letters of a test's own, and the topics that they came from."""

import pytest

from shared.platform.database.pool import Database
from shared.platform.settings import KafkaSettings
from tests.shared.domain.dead_letters.graveyard import Graveyard


@pytest.fixture
def graveyard(database: Database, all_topics: KafkaSettings) -> Graveyard:
    return Graveyard(database, all_topics)

"""Dead letters of a test's own, and the topics that they came from."""

import pytest

from shared.db.pool import Database
from shared.settings import KafkaSettings
from tests.shared.dead.graveyard import Graveyard


@pytest.fixture
def graveyard(database: Database, all_topics: KafkaSettings) -> Graveyard:
    return Graveyard(database, all_topics)

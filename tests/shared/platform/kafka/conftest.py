"""A work topic and a dead-letter topic for each test."""

from collections.abc import Callable, Sequence

import pytest

from shared.domain.topics import DEAD_LETTERS
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from tests.shared.platform.kafka.harness import WORK, Kafka


@pytest.fixture
def kafka(kafka_settings: KafkaSettings, make_topics: Callable[[Sequence[Topic]], None]) -> Kafka:
    make_topics([WORK, DEAD_LETTERS])
    return Kafka(kafka_settings)

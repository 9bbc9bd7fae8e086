"""The scheduler notices a missing topic and says so. It may not create one."""

from collections.abc import Callable

import pytest

from services.scheduler.jobs.outbox_and_topic_watch import TopicWatch
from shared.domain.kafka_principals import SCHEDULER
from shared.domain.topics import WEBHOOKS_DEAD
from shared.platform.kafka import clients
from shared.platform.kafka.access import Principal
from shared.platform.kafka.topic_setup import TopicsDifferError
from shared.platform.settings import KafkaSettings
from tests.topics import delete_topic


def test_missing_topic_is_reported_and_not_created(
    all_topics: KafkaSettings, kafka_as: Callable[[Principal], KafkaSettings]
) -> None:
    watch = TopicWatch(kafka_as(SCHEDULER))
    assert watch.run_once() > 0
    delete_topic(all_topics, WEBHOOKS_DEAD)
    name = clients.topic_name(all_topics, WEBHOOKS_DEAD.name)
    with pytest.raises(TopicsDifferError) as missing:
        watch.run_once()
    assert missing.value.differences == (f"{name}: does not exist",)
    assert name not in clients.admin(all_topics, "test").list_topics(timeout=10).topics

"""Topics that get lost."""

from shared.platform.kafka import clients
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from tests.waiting import eventually


def delete_topic(kafka: KafkaSettings, topic: Topic) -> None:
    """With all that is in it; returns when it is gone."""
    name = clients.topic_name(kafka, topic.name)
    admin = clients.admin(kafka, "test")
    admin.delete_topics([name], operation_timeout=30)[name].result(30)
    eventually(lambda: name not in admin.list_topics(timeout=10).topics)

"""Topics that get lost."""

from shared.kafka import clients
from shared.settings import KafkaSettings
from shared.topics import Topic
from tests.waiting import eventually


def delete_topic(kafka: KafkaSettings, topic: Topic) -> None:
    """With all that is in it; returns when it is gone."""
    name = clients.topic_name(kafka, topic.name)
    admin = clients.admin(kafka, "test")
    admin.delete_topics([name], operation_timeout=30)[name].result(30)
    eventually(lambda: name not in admin.list_topics(timeout=10).topics)

"""One look at the topics alone, without the groups that consume them."""

from contextlib import closing

from confluent_kafka import KafkaException
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from shared.kafka import clients
from shared.kafka.clients import KafkaUnavailableError
from shared.kafka.watching.deadline import Deadline
from shared.kafka.watching.ends import find_ends, find_topics
from shared.kafka.watching.heads import KnownHeads
from shared.kafka.watching.sights import Sight
from shared.kafka.watching.views import TopicView
from shared.settings import KafkaSettings
from shared.topics import ALL_TOPICS

_TIMEOUT_S = 10.0
_PATIENCE_S = 30.0


def look_at_topics(settings: KafkaSettings) -> tuple[TopicView, ...]:
    """Tries again for a while: a topic that was just made may have no leader yet, and a broker may be coming back."""
    look = Retrying(
        wait=wait_fixed(0.1),
        stop=stop_after_delay(_PATIENCE_S),
        retry=retry_if_exception_type((KafkaException, KafkaUnavailableError, TimeoutError)),
        reraise=True,
    )
    try:
        return look(_look, settings)
    except KafkaException as error:
        raise KafkaUnavailableError(f"topics cannot be looked at: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailableError("topics cannot be looked at: no answer") from error


def _look(settings: KafkaSettings) -> tuple[TopicView, ...]:
    deadline = Deadline(_TIMEOUT_S)
    topics = {clients.topic_name(settings, topic.name): topic for topic in ALL_TOPICS}
    admin = clients.admin(settings, "watching")
    _, found = find_topics(admin, list(topics), deadline)
    ends = find_ends(admin, found, deadline)
    sights = [
        Sight(topic, found[name].id if name in found else None, ends.get(name, ()), {})
        for name, topic in topics.items()
    ]
    with closing(KnownHeads(settings)) as heads:
        oldest = heads.of({place for sight in sights for place in sight.places()}, deadline)
    return tuple(sight.topic_view(oldest) for sight in sights)

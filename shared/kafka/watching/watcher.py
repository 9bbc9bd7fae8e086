"""Looks at all of Mizan's topics and groups: for operators, at a page or at a terminal."""

from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

from confluent_kafka import KafkaException

from shared.kafka import clients
from shared.kafka.clients import KafkaUnavailableError
from shared.kafka.watching.committed import GroupOffsets
from shared.kafka.watching.deadline import Deadline
from shared.kafka.watching.ends import find_ends, find_topics
from shared.kafka.watching.heads import KnownHeads
from shared.kafka.watching.members import Membership, memberships
from shared.kafka.watching.sights import Sight
from shared.kafka.watching.views import KafkaView
from shared.settings import KafkaSettings
from shared.topics import ALL_TOPICS

_TIMEOUT_S = 5.0
# Then the clients are made anew, for librdkafka 2.16 can lose all its brokers while one of them starts.
_PATIENCE_S = 30.0


class KafkaWatcher:
    """Keeps its clients between looks, which may follow each other within seconds. For one thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._topics = {clients.topic_name(settings, topic.name): topic for topic in ALL_TOPICS}
        self._groups = {
            clients.group_name(settings, topic.group): name
            for name, topic in self._topics.items()
            if topic.group
        }
        # A look that fails says why; all these clients would say it too, again and again.
        self._settings = replace(settings, client={"log_level": "0", **settings.client})
        self._failing_since: float | None = None
        self._connect()

    def look(self, now: datetime | None = None) -> KafkaView:
        """`now` is given where another clock than this machine's decides. Raises KafkaUnavailableError in seconds."""
        began = monotonic()
        if self._failing_since is not None and began - self._failing_since > _PATIENCE_S:
            self.close()
            self._connect()
            self._failing_since = began
        try:
            view = self._look(Deadline(_TIMEOUT_S), now)
        except (KafkaException, KafkaUnavailableError, TimeoutError) as error:
            self._failing_since = began if self._failing_since is None else self._failing_since
            reason = error.args[0].str() if isinstance(error, KafkaException) else error
            raise KafkaUnavailableError(f"Kafka cannot be looked at: {reason}") from error
        self._failing_since = None
        return view

    def close(self) -> None:
        self._heads.close()
        self._offsets.close()

    def _connect(self) -> None:
        self._admin = clients.admin(self._settings, "watching")
        self._offsets = GroupOffsets(self._settings, [topic.group for topic in ALL_TOPICS if topic.group])
        self._heads = KnownHeads(self._settings)

    def _look(self, deadline: Deadline, now: datetime | None) -> KafkaView:
        """Offsets before ends: the other way round, what is done in between would seem to be beyond the end.

        And before members: a coordinator that has told its offsets has loaded its groups too, one that starts has not.
        """
        self._admin.poll(0)  # lets it tell what it has to say, which would pile up otherwise
        brokers, found = find_topics(self._admin, list(self._topics), deadline)
        committed = {
            name: self._offsets.of(topic.group, name, found[name].partitions, deadline)
            for name, topic in self._topics.items()
            if topic.group and name in found
        }
        people = memberships(self._admin, self._groups, deadline)
        ends = find_ends(self._admin, found, deadline)
        sights = [
            Sight(
                topic, found[name].id if name in found else None, ends.get(name, ()), committed.get(name, {})
            )
            for name, topic in self._topics.items()
        ]
        heads = self._heads.of({place for sight in sights for place in sight.places()}, deadline)
        at = now or datetime.now(UTC)
        of_topic = {topic: people.get(group, Membership()) for group, topic in self._groups.items()}
        return KafkaView(
            at=at,
            topics=tuple(sight.topic_view(heads) for sight in sights),
            groups=tuple(
                sight.group_view(heads, of_topic[name], at)
                for name, sight in zip(self._topics, sights, strict=True)
                if sight.topic.group
            ),
            brokers=brokers,
        )

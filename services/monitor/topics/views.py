"""Pages about topics: all topics with their consumer groups, and one topic with partitions, members and history."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, abort, render_template
from flask.typing import ResponseReturnValue

from services.monitor import formatting as common_words
from services.monitor.access import add_route
from services.monitor.dependencies import Dependencies
from services.monitor.inspection import history
from services.monitor.inspection.problems import Thresholds
from services.monitor.sparklines import Pen
from services.monitor.topics import labels
from shared.console.requests import wants_part
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELAY
from shared.platform.kafka.topic_definition import Topic

_BY_NAME = {topic.name: topic for topic in ALL_TOPICS}
_DELAY = frozenset(topic.name for topic in WEBHOOKS_DELAY)


@dataclass(frozen=True, slots=True)
class TopicPages:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        consumed = [topic for topic in ALL_TOPICS if topic.group and topic.name not in _DELAY]
        delays = zip(WEBHOOKS_DELAY, self.dependencies.settings.webhooks.retry_delays, strict=True)
        return render_template(
            "topics/list_partial.html" if wants_part() else "topics/list.html",
            **self._surroundings(),
            consumed=consumed,
            delays=list(delays),
            kept=[topic for topic in ALL_TOPICS if not topic.group],
        )

    def show(self, name: str) -> ResponseReturnValue:
        topic = _BY_NAME.get(name) or abort(404)
        return render_template(
            "topics/show_partial.html" if wants_part() else "topics/show.html",
            **self._surroundings(),
            topic=topic,
            holders=self._holders(topic),
        )

    def _surroundings(self) -> dict[str, Any]:
        now = datetime.now(UTC)
        looked = self.dependencies.watch.seen().kafka
        return {
            "now": now,
            "looked": looked,
            "kafka": looked.found,
            "pen": Pen(self.dependencies.watch.history(), now),
            "limits": Thresholds(),
            "numbers": history,
            "told": labels,
            "words": common_words,
        }

    def _holders(self, topic: Topic) -> dict[int, str]:
        """Which member has a partition."""
        kafka = self.dependencies.watch.seen().kafka.found
        group = kafka and kafka.group_of(topic.name)
        if not group:
            return {}
        return {partition: member.client_id for member in group.members for partition in member.partitions}


def topics_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("topics", __name__)
    pages = TopicPages(dependencies)
    add_route(blueprint, "/topics", pages.listing)
    add_route(blueprint, "/topics/<name>", pages.show)
    return blueprint

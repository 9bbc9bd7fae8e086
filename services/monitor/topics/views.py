"""Pages about topics: all topics with their consumer groups, and one topic with partitions, members and history."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, abort, render_template
from flask.typing import ResponseReturnValue

from services.monitor.access import add_route
from services.monitor.dependencies import Dependencies
from services.monitor.inspection import history
from services.monitor.inspection.rules import Thresholds
from services.monitor.sparklines import SparklineRenderer
from services.monitor.topics import labels
from shared.console.requests import wants_part
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELAY
from shared.platform.kafka.topic_definition import Topic

_BY_NAME = {topic.name: topic for topic in ALL_TOPICS}
_DELAY = frozenset(topic.name for topic in WEBHOOKS_DELAY)


@dataclass(frozen=True, slots=True)
class TopicViews:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        consumed = [topic for topic in ALL_TOPICS if topic.group and topic.name not in _DELAY]
        delays = zip(WEBHOOKS_DELAY, self.dependencies.settings.webhooks.retry_delays, strict=True)
        return render_template(
            "topics/list_partial.html" if wants_part() else "topics/list.html",
            **self._common_context(),
            consumed=consumed,
            delays=list(delays),
        )

    def show(self, name: str) -> ResponseReturnValue:
        topic = _BY_NAME.get(name) or abort(404)
        return render_template(
            "topics/show_partial.html" if wants_part() else "topics/show.html",
            **self._common_context(),
            topic=topic,
            assigned_clients=self._assigned_clients(topic),
        )

    def _common_context(self) -> dict[str, Any]:
        now = datetime.now(UTC)
        poll = self.dependencies.inspector.state().kafka
        return {
            "now": now,
            "poll": poll,
            "kafka": poll.value,
            "sparklines": SparklineRenderer(self.dependencies.inspector.history(), now),
            "thresholds": Thresholds(),
            "history": history,
            "labels": labels,
        }

    def _assigned_clients(self, topic: Topic) -> dict[int, str]:
        """Return the client id of the member that each partition is assigned to."""
        kafka = self.dependencies.inspector.state().kafka.value
        group = kafka and kafka.group_of(topic.name)
        if not group:
            return {}
        return {partition: member.client_id for member in group.members for partition in member.partitions}


def create_topics_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("topics", __name__)
    views = TopicViews(dependencies)
    add_route(blueprint, "/topics", views.listing)
    add_route(blueprint, "/topics/<name>", views.show)
    return blueprint

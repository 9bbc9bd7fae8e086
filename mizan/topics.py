"""`mizan topics`: creates missing topics, reports those that differ from their definition, and lists all."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mizan.command_context import startup_settings
from mizan.output import echo_rows, json_option, timestamp
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.clients import topic_name
from shared.platform.kafka.inspection.inspector import inspect_topics
from shared.platform.kafka.topic_setup import TopicsDifferError, ensure_topics


@click.command("topics")
@json_option
def topics_command(*, as_json: bool) -> None:
    """Create missing topics, and list all. Exit code 1 if one differs from its definition."""
    with startup_settings() as settings:
        try:
            made = ensure_topics(settings.kafka, ALL_TOPICS)
        except TopicsDifferError as error:
            raise click.ClickException(
                f"{error}\nChange them with your Kafka tools, or remove them if nothing in them is needed."
            ) from error
        views = inspect_topics(settings.kafka, ALL_TOPICS)
    topics: list[Mapping[str, Any]] = [
        {
            "topic": topic_name(settings.kafka, topic.name),
            "partitions": len(view.partitions),
            "records": view.records,
            "oldest_record": timestamp(view.oldest_at),
            "retention_seconds": int(topic.retention.total_seconds()),
            "made_now": topic_name(settings.kafka, topic.name) in made,
        }
        for topic, view in zip(ALL_TOPICS, views, strict=True)
    ]
    if as_json:
        click.echo(json.dumps({"topics": topics}))
    else:
        echo_rows(_for_people(topics))


def _for_people(topics: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [
        {
            "topic": topic["topic"],
            "partitions": topic["partitions"],
            "records": f"{topic['records']:,}",
            "oldest record": topic["oldest_record"],
            "retention": f"{topic['retention_seconds'] // 86400} days",
            "": "created now" if topic["made_now"] else "",
        }
        for topic in topics
    ]

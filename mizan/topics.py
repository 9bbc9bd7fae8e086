"""`mizan topics`: makes the topics that are missing and reports those that differ."""

import click

from mizan.installation import installation
from shared.kafka.clients import topic_name
from shared.kafka.topic_check import TopicsDifferError, ensure_topics
from shared.topics import ALL_TOPICS


@click.command("topics")
def topics_command() -> None:
    """Make the topics that are missing, and list all. Exit code 1 when one differs from its definition."""
    with installation() as settings:
        try:
            made = ensure_topics(settings.kafka, ALL_TOPICS)
        except TopicsDifferError as error:
            raise click.ClickException(
                f"{error}\nChange them with your Kafka tools, or remove them if nothing in them is needed."
            ) from error
    for topic in ALL_TOPICS:
        name = topic_name(settings.kafka, topic.name)
        note = "  made now" if name in made else ""
        click.echo(f"{name:32} {topic.partitions:3} partitions  {topic.retention.days:3} days{note}")

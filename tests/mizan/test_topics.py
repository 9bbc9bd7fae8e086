"""`mizan topics`: creates missing topics and shows partitions, records and retention."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from shared.domain.topics import ALL_TOPICS, PAYMENT_INTENT_EVENTS, WEBHOOKS_DEAD, WEBHOOKS_DELIVER
from shared.platform.kafka import clients
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from tests.mizan.conftest import Mizan
from tests.scheduler.deliveries import Line
from tests.topics import kafka_variables


@pytest.fixture
def environment(environment: dict[str, str], kafka_settings: KafkaSettings) -> dict[str, str]:
    return {
        **environment,
        **kafka_variables(kafka_settings),
    }


def test_table_shows_partitions_records_and_retention(run: Mizan, kafka_settings: KafkaSettings) -> None:
    """One row for each topic; those that were just created are marked."""
    first = run("topics")
    assert (first.exit_code, first.stdout.count("created now")) == (0, len(ALL_TOPICS))
    Line(kafka_settings).put(WEBHOOKS_DELIVER, *[b"x"] * 1100)
    answer = run("topics")
    assert "created now" not in answer.stdout
    head, *rows = answer.stdout.splitlines()
    assert head.split("  ")[0] == "topic"
    assert [row.split()[0] for row in rows] == [
        clients.topic_name(kafka_settings, topic.name) for topic in ALL_TOPICS
    ]
    assert [row.split()[1:3] + row.split()[4:] for row in rows if row.split()[0].endswith(".deliver")] == [
        ["6", "1,100", "7", "days"]
    ]


def test_topic_that_differs_is_reported(run: Mizan, make_topics: Callable[[Sequence[Topic]], None]) -> None:
    """With exit code 1, the difference, and what to do."""
    make_topics([replace(PAYMENT_INTENT_EVENTS, partitions=2)])
    answer = run("topics")
    assert answer.exit_code == 1
    assert "payment_intents.events: partitions is 2, should be 6" in answer.stderr
    assert "Change them with your Kafka tools" in answer.stderr


def test_json_shows_partitions_records_and_retention(
    run: Mizan, kafka_settings: KafkaSettings, make_topics: Callable[[Sequence[Topic]], None]
) -> None:
    """And which topics were just created."""
    make_topics([WEBHOOKS_DEAD])
    Line(kafka_settings).put(WEBHOOKS_DEAD, b"x", b"y", age_s=3600)
    answer = run("topics", "--json")
    assert answer.exit_code == 0
    topics = {topic["topic"]: topic for topic in json.loads(answer.stdout)["topics"]}
    dead = topics[clients.topic_name(kafka_settings, WEBHOOKS_DEAD.name)]
    assert (dead["partitions"], dead["records"], dead["retention_seconds"]) == (1, 2, 30 * 86400)
    assert (dead["made_now"], dead["oldest_record"] is None) == (False, False)
    other = topics[clients.topic_name(kafka_settings, WEBHOOKS_DELIVER.name)]
    assert (other["made_now"], other["records"], other["oldest_record"]) == (True, 0, None)

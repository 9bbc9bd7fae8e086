"""The topics page lists all topics and consumer groups, and each topic has a page with its partitions."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from services.monitor.inspection.snapshots import PollResult
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER
from shared.platform.kafka.inspection.health import Health
from shared.platform.kafka.inspection.snapshot import GroupMember
from shared.platform.settings import KafkaSettings
from stack.engines import Engines
from tests.monitor.snapshot_builders import group, kafka, lag
from tests.monitor.test_overview import HOSTILE, shows
from tests.monitor.topic_records import Records
from tests.monitor.world import MonitorWorld, poll_all
from tests.page_client import PageClient

CONSUMED = [topic for topic in ALL_TOPICS if topic.group]


@pytest.fixture
def records(pages: MonitorWorld, all_topics: KafkaSettings) -> Records:
    return Records(pages.settings.kafka)


def test_every_topic_and_group_of_kafka_is_shown(
    pages: MonitorWorld, operator: PageClient, records: Records
) -> None:
    records.put(WEBHOOKS_DELIVER, 3, ago=timedelta(minutes=2))
    records.put(WEBHOOKS_DELAY[1], 4, due_in=timedelta(minutes=30))
    poll_all(pages.inspector)
    poll_all(pages.inspector)
    operator.open("/topics")
    for topic in ALL_TOPICS:
        assert f'href="/topics/{topic.name}"' in operator.response.text
    # A busy machine may take some seconds.
    assert re.search(r"webhooks\.deliver No consumers 0 3 2(\.\d)? min", operator.text)
    assert re.search(r"in (30|29(\.\d)?) min", operator.text)
    assert '<svg class="spark"' in operator.response.text
    for topic in ALL_TOPICS:
        assert operator.open(f"/topics/{topic.name}").status_code == 200
        assert operator.title == topic.name


def test_topic_page_shows_its_partitions(pages: MonitorWorld, operator: PageClient, records: Records) -> None:
    records.put(WEBHOOKS_DELIVER, 3, partition=4, ago=timedelta(minutes=3))
    poll_all(pages.inspector)
    operator.open("/topics/webhooks.deliver")
    assert re.search(r"4 0 3 – 3 3(\.\d)? min", operator.text)
    assert operator.text.count("No consumers") == 1


def test_an_unhealthy_group_is_red_with_its_label(pages: MonitorWorld, operator: PageClient) -> None:
    groups = [group(topic.name, lag(records=5, seconds=99), name=topic.group) for topic in CONSUMED]
    words = {Health.STALLED: "Stalled", Health.NO_MEMBERS: "No consumers", Health.BEHIND: "Behind"}
    for health, word in words.items():
        shows(pages, kafka=kafka(*groups, health=health))
        for path in ("/topics", "/topics/webhooks.deliver"):
            assert f'<span class="badge bad">{word}</span>' in operator.open(path).text


def test_old_results_are_marked_and_not_red(pages: MonitorWorld, operator: PageClient) -> None:
    groups = [group(topic.name, name=topic.group) for topic in CONSUMED]
    seen_at = datetime.now(UTC) - timedelta(minutes=9)
    shows(pages, kafka=PollResult(kafka(*groups), seen_at, "no answer", datetime.now(UTC)))
    for path in ("/topics", "/topics/webhooks.deliver"):
        operator.open(path)
        assert "Kafka does not answer. This information is old. It is from" in operator.text
        assert '<span class="badge quiet">Healthy</span>' in operator.response.text


@pytest.mark.kills
@pytest.mark.timeout(300)
def test_topics_pages_work_if_kafka_was_never_reachable(
    pages: MonitorWorld, operator: PageClient, killable_engines: Engines
) -> None:
    killable_engines.kafka.kill()
    pages.inspector.kafka.poll_once()
    for path in ("/topics", "/topics/webhooks.deliver", "/"):
        assert operator.open(path).status_code == 200
        assert "Kafka does not answer." in operator.text


def test_hostile_client_names_are_escaped(pages: MonitorWorld, operator: PageClient) -> None:
    member = GroupMember(HOSTILE, HOSTILE, HOSTILE, (0,))
    groups = [group(topic.name, members=[member], name=topic.group) for topic in CONSUMED]
    shows(pages, kafka=kafka(*groups))
    page = operator.open("/topics/webhooks.deliver")
    assert page.status_code == 200
    assert "<script>alert" not in page.text


def test_unknown_topic_is_404_and_a_missing_one_is_shown_as_missing(
    pages: MonitorWorld, operator: PageClient
) -> None:
    assert operator.open("/topics/secrets").status_code == 404
    groups = [group(topic.name, name=topic.group) for topic in CONSUMED]
    shows(pages, kafka=kafka(*groups, missing=["webhooks.deliver"]))
    for path in ("/topics", "/topics/webhooks.deliver"):
        assert "Does not exist" in operator.open(path).text


def test_script_gets_only_the_partial_of_the_topics_pages(pages: MonitorWorld, operator: PageClient) -> None:
    shows(pages, kafka=kafka(*(group(topic.name, name=topic.group) for topic in CONSUMED)))
    for path in ("/topics", "/topics/webhooks.deliver"):
        part = operator.open(path, **{"X-Part": "topics"})
        assert part.status_code == 200
        assert "<html" not in part.text

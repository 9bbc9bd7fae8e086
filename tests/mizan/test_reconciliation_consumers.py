"""`mizan audit` looks whether every consumer is alive: a group without members is a finding."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from mizan.reconciliation import checks
from shared.domain.kafka_principals import CLI
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELIVER
from shared.platform.kafka import clients
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from stack.ports import find_free_ports
from tests.mizan.conftest import Mizan
from tests.topics import as_principal, kafka_variables
from tests.waiting import eventually

GROUPS = [topic for topic in ALL_TOPICS if topic.group]


@pytest.fixture
def environment(environment: dict[str, str], all_topics: KafkaSettings) -> dict[str, str]:
    return {
        **environment,
        **kafka_variables(as_principal(all_topics, CLI)),
    }


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "RECHECK_DELAYS_S", (0.01,))


@contextmanager
def consuming(settings: KafkaSettings, topics: Sequence[Topic]) -> Iterator[None]:
    """Join the groups of these topics, and leave them at the end."""
    members = []
    for topic in topics:
        assert topic.group
        member = clients.consumer(settings, topic.group)
        member.subscribe([clients.topic_name(settings, topic.name)])
        members.append(member)

    def have_joined() -> bool:
        for member in members:
            member.poll(0)
        return all(member.assignment() for member in members)

    try:
        eventually(have_joined)
        yield
    finally:
        for member in members:
            member.close()


def test_group_without_members_is_a_finding(run: Mizan, all_topics: KafkaSettings) -> None:
    others = [topic for topic in GROUPS if topic is not WEBHOOKS_DELIVER]
    with consuming(all_topics, others):
        report = run("audit", "--json")
        assert report.exit_code == 1
        (found,) = json.loads(report.stdout)["findings"]
        assert (found["check"], found["what"], found["id"]) == (
            "consumers_alive",
            "stuck",
            "webhooks.deliver",
        )
        lines = run("audit").stdout.splitlines()
        assert f"Consumers: 1 of {len(GROUPS)} groups have no member, see below." in lines
        assert "  webhooks.deliver  no member consumes webhooks.deliver: 0 records wait" in lines
        with consuming(all_topics, [WEBHOOKS_DELIVER]):
            answer = run("audit")
    assert answer.exit_code == 0
    assert f"Consumers: all {len(GROUPS)} groups have a member" in answer.stdout


def test_audit_without_kafka_is_incomplete(run: Mizan) -> None:
    """The exit code says so. Of a restored backup, the database alone can be checked."""
    away = {"KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{find_free_ports(1)[0]}"}
    answer = run("audit", **away)
    assert answer.exit_code == 2
    assert "not everything was checked: the consumers: Kafka cannot be inspected" in answer.stdout
    alone = run("audit", "--database-only", **away)
    assert alone.exit_code == 0
    assert "Consumers: not checked." in alone.stdout.splitlines()
    assert alone.stdout.splitlines()[-1] == "Nothing is lost, doubled or stuck in the database."

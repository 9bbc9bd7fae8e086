"""`mizan lag`: a table, JSON for scripts, and a check with an exit code."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from shared.domain.kafka_principals import CLI
from shared.domain.messages import DeliveryDue
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER, WEBHOOKS_SLOW
from shared.platform.kafka import clients
from shared.platform.kafka.inspection import inspector
from shared.platform.kafka.topic_definition import Topic
from shared.platform.settings import KafkaSettings
from stack.ports import find_free_ports
from tests.mizan.conftest import Mizan
from tests.scheduler.deliveries import Line
from tests.topics import as_principal, kafka_variables
from tests.waiting import eventually

DELAYED = WEBHOOKS_DELAY[7]


@pytest.fixture
def environment(environment: dict[str, str], kafka_settings: KafkaSettings) -> dict[str, str]:
    return {
        **environment,
        **kafka_variables(as_principal(kafka_settings, CLI)),
    }


@pytest.fixture
def line(kafka_settings: KafkaSettings, make_topics: Callable[[Sequence[Topic]], None]) -> Line:
    make_topics([WEBHOOKS_DELIVER, WEBHOOKS_SLOW, DELAYED])
    return Line(kafka_settings)


def group_of(output: str, topic: Topic) -> dict[str, Any]:
    groups = [group for group in json.loads(output)["groups"] if group["topic"].endswith(topic.name)]
    assert len(groups) == 1
    return dict(groups[0])


def row_of(output: str, name: str) -> list[str]:
    (row,) = [row.split() for row in output.splitlines() if row.startswith(f"{name} ")]
    return row


def test_every_group_has_a_row(run: Mizan, line: Line) -> None:
    """With its members, its lag in records and seconds, and its last commit."""
    line.put(WEBHOOKS_DELIVER, *[b"x"] * 1200, age_s=100)
    line.commit(WEBHOOKS_DELIVER, 100)
    answer = run("lag")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[0].split("  ")[0] == "group"
    for topic in ALL_TOPICS:
        if topic.group:
            assert row_of(answer.stdout, topic.group)
    name, state, members, records, seconds, *_, last_commit = row_of(answer.stdout, "webhooks.deliver")
    assert (name, state, members, records, last_commit) == ("webhooks.deliver", "empty", "0", "1,100", "-")
    assert float(seconds) >= 100


def test_partitions_option_prints_a_row_for_each_partition(run: Mizan, line: Line) -> None:
    """So that a stuck partition is visible."""
    line.put(WEBHOOKS_DELIVER, b"x", b"y", partition=3)
    line.commit(WEBHOOKS_DELIVER, 1, partition=3)
    answer = run("lag", "--partitions")
    rows = [row.split() for row in answer.stdout.splitlines() if row.startswith("webhooks.deliver ")]
    assert [row[1:5] for row in rows] == [
        [str(number), "1", "2", "1"] if number == 3 else [str(number), "-", "0", "0"] for number in range(6)
    ]


def test_json_has_groups_and_partitions(run: Mizan, line: Line) -> None:
    """With the full names of Kafka. Delay topics also have the waiting records and the next due time."""
    due_at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    line.put(WEBHOOKS_DELIVER, b"x", b"y", age_s=100)
    line.commit(WEBHOOKS_DELIVER, 1)
    line.put(DELAYED, DeliveryDue(uuid4(), uuid4(), 9, due_at), age_s=500)
    answer = run("lag", "--json")
    assert answer.exit_code == 0
    found = group_of(answer.stdout, WEBHOOKS_DELIVER)
    assert found["group"] == clients.group_name(line.settings, "webhooks.deliver")
    assert (found["state"], found["members"], found["lag_records"], found["last_commit"]) == (
        "empty",
        [],
        1,
        None,
    )
    assert found["lag_seconds"] >= 100
    assert "waiting" not in found
    first = found["partitions"][0]
    assert (first["partition"], first["committed"], first["end"], first["lag_records"]) == (0, 1, 2, 1)
    delayed = group_of(answer.stdout, DELAYED)
    assert (delayed["waiting"], delayed["lag_seconds"]) == (1, 0)
    assert delayed["next_due"] == due_at.isoformat().replace("+00:00", "Z")


def test_json_lists_the_members_of_a_group(run: Mizan, line: Line) -> None:
    """With client id, host and partitions."""
    member = clients.consumer(line.settings, "webhooks.slow")
    member.subscribe([clients.topic_name(line.settings, WEBHOOKS_SLOW.name)])
    eventually(lambda: member.poll(0.1) or member.assignment())
    (told,) = group_of(run("lag", "--json").stdout, WEBHOOKS_SLOW)["members"]
    assert (told["client_id"], told["host"], told["partitions"]) == (
        "mizan-webhooks.slow",
        "127.0.0.1",
        [0, 1, 2],
    )
    member.close()


def test_lag_above_the_limit_is_exit_code_3(run: Mizan, line: Line) -> None:
    """The table is still printed, and the group is named."""
    member = clients.consumer(line.settings, "webhooks.deliver")
    member.subscribe([clients.topic_name(line.settings, WEBHOOKS_DELIVER.name)])
    eventually(lambda: member.poll(0.1) or member.assignment())
    assert run("lag", "--max-seconds", "0").exit_code == 0
    line.put(WEBHOOKS_DELIVER, b"x", age_s=100)
    assert run("lag", "--max-seconds", "9999").exit_code == 0
    assert run("lag").exit_code == 0
    answer = run("lag", "--json", "--max-seconds", "60")
    assert answer.exit_code == 3
    assert group_of(answer.stdout, WEBHOOKS_DELIVER)["lag_records"] == 1
    assert "more than 60 s behind: webhooks.deliver" in answer.stderr
    member.close()


def test_records_without_a_consumer_are_exit_code_3(run: Mizan, line: Line) -> None:
    """However young they are, and also if they are held until due."""
    line.put(DELAYED, DeliveryDue(uuid4(), uuid4(), 9, datetime.now(UTC) + timedelta(hours=1)))
    assert run("lag").exit_code == 0
    answer = run("lag", "--max-seconds", "9999")
    assert answer.exit_code == 3
    assert "records wait and no member consumes them: webhooks.delay.8" in answer.stderr


def test_unavailable_kafka_is_exit_code_1(run: Mizan, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one clear line, also with --max-seconds."""
    monkeypatch.setattr(inspector, "_TIMEOUT_S", 0.5)
    nobody = f"127.0.0.1:{find_free_ports(1)[0]}"
    answer = run("lag", "--max-seconds", "1", KAFKA_BOOTSTRAP_SERVERS=nobody)
    assert answer.exit_code == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "Kafka cannot be inspected" in answer.stderr
    assert answer.stdout == ""

"""`bin/mizan` as an operator calls it."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shared.db.schema import head_revision
from shared.kafka.topic_check import ensure_topics
from shared.settings import DatabaseSettings, KafkaSettings
from shared.topics import PAYMENT_INTENT_EVENTS
from stack.free_ports import find_free_ports

Mizan = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def mizan(repository_root: Path, database_settings: DatabaseSettings, kafka_settings: KafkaSettings) -> Mizan:
    def call(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        given = {
            "PATH": os.environ["PATH"],  # noqa: TID251  the launcher needs it
            "DATABASE_URL": database_settings.url,
            "KAFKA_BOOTSTRAP_SERVERS": kafka_settings.bootstrap_servers,
            "KAFKA_TOPIC_PREFIX": kafka_settings.topic_prefix,
            **environment,
        }
        command = [str(repository_root / "bin" / "mizan"), *words]
        environment = {name: value for name, value in given.items() if value}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return call


def test_migrate_can_be_repeated(mizan: Mizan) -> None:
    """It says where the schema is."""
    assert mizan("migrate").stdout == f"schema is at revision {head_revision()}\n"


def test_topics_are_made_and_listed(mizan: Mizan) -> None:
    """What was made now is marked."""
    first, second = mizan("topics"), mizan("topics")
    assert first.returncode == second.returncode == 0
    assert first.stdout.count("made now") == 15
    assert "made now" not in second.stdout
    assert "webhooks.delay.8" in second.stdout


def test_a_topic_that_differs_is_reported(mizan: Mizan, kafka_settings: KafkaSettings) -> None:
    """Exit code 1, what differs, and what to do."""
    ensure_topics(kafka_settings, [replace(PAYMENT_INTENT_EVENTS, partitions=2)])
    answer = mizan("topics")
    assert answer.returncode == 1
    assert "payment_intents.events: partitions is 2, should be 6" in answer.stderr


def test_a_running_stack_is_found_by_its_directory(
    mizan: Mizan, database_settings: DatabaseSettings, kafka_settings: KafkaSettings, tmp_path: Path
) -> None:
    """Nothing but STACK_DIR is needed."""
    stack = {
        "database_url": database_settings.url,
        "kafka_bootstrap_servers": kafka_settings.bootstrap_servers,
    }
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    answer = mizan("migrate", DATABASE_URL="", KAFKA_BOOTSTRAP_SERVERS="", STACK_DIR=str(tmp_path))
    assert answer.stdout == f"schema is at revision {head_revision()}\n"


@pytest.mark.parametrize(
    ("environment", "code", "told"),
    [
        ({"DATABASE_URL": ""}, 78, "DATABASE_URL: Environment variable not set."),
        ({"DATABASE_URL": "postgresql://mizan:hush@127.0.0.1:{nobody}/x"}, 1, "Connection refused"),
    ],
)
def test_trouble_is_one_clear_message(
    mizan: Mizan, tmp_path: Path, environment: dict[str, str], code: int, told: str
) -> None:
    """No traceback, no password; wrong settings have the exit code that services give them."""
    nobody = str(find_free_ports(1)[0])
    given = {name: value.format(nobody=nobody) for name, value in environment.items()}
    answer = mizan("migrate", **given, STACK_DIR=str(tmp_path))
    assert answer.returncode == code
    assert told in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "hush" not in answer.stderr

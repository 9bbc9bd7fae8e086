"""`mizan` logs in to the Kafka of a running stack as the command line, and `mizan topics` as the admin."""

import json
import os
from pathlib import Path

import pytest

from shared.platform.settings import read_operator_environment

LOGINS = {
    "kafka_client": {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "mizan-admin"},
    "kafka_cli_client": {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "mizan-cli"},
}


@pytest.fixture(autouse=True)
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack.json, and an environment that names nothing else."""
    facts = {"database_url": "postgresql://m@127.0.0.1/m", "kafka_bootstrap_servers": "127.0.0.1:9092"}
    (tmp_path / "stack.json").write_text(json.dumps(facts | LOGINS))
    monkeypatch.setattr(os, "environ", {"STACK_DIR": str(tmp_path)})


def test_command_line_and_admin_have_their_own_logins() -> None:
    assert read_operator_environment().settings.kafka.client == LOGINS["kafka_cli_client"]


def test_topics_are_created_as_the_admin() -> None:
    assert read_operator_environment(as_kafka_admin=True).settings.kafka.client == LOGINS["kafka_client"]


def test_login_of_the_stack_is_not_sent_to_another_kafka() -> None:
    os.environ["KAFKA_BOOTSTRAP_SERVERS"] = "kafka.example.ly:9092"  # noqa: TID251  the fixture's own
    assert read_operator_environment().settings.kafka.client == {}


def test_given_login_wins() -> None:
    os.environ["KAFKA_CLIENT_SASL_USERNAME"] = "mona"  # noqa: TID251  the fixture's own
    assert read_operator_environment().settings.kafka.client == {"sasl.username": "mona"}

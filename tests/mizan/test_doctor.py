"""`mizan doctor` names what a service may do and does not need, on a running installation."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from shared.domain.kafka_principals import ALL_PRINCIPALS, CLI, WEBHOOKS
from shared.domain.topics import WEBHOOKS_DEAD
from shared.platform.database.pool import Database
from shared.platform.kafka.access import Acl
from shared.platform.kafka.access_setup import AccessAdmin
from shared.platform.settings import DatabaseSettings, KafkaSettings
from tests.database_roles import as_role
from tests.mizan.conftest import KEY, Mizan
from tests.topics import as_principal, kafka_variables
from tests.waiting import eventually

ALL_WELL: dict[str, list[str]] = {"PostgreSQL": [], "Kafka": [], "keys": []}


pytestmark = pytest.mark.usefixtures("has_access_control")


@pytest.fixture
def environment(environment: dict[str, str], all_topics: KafkaSettings) -> Iterator[dict[str, str]]:
    """Of an installation in which everybody may do what is declared."""
    access = AccessAdmin(all_topics)
    access.apply(ALL_PRINCIPALS)
    eventually(lambda: not access.compare(ALL_PRINCIPALS))  # a broker learns of ACLs a moment later
    yield {**environment, **kafka_variables(all_topics), "MIZAN_SECRET_KEYS": ""}
    access.remove_acls(acl for acl in access.fetch_acls() if acl.name.startswith(all_topics.topic_prefix))


def _faults(run: Mizan, **more: str) -> Any:
    result = run("doctor", "--json", **more)
    faults = json.loads(result.output)["faults"]
    assert result.exit_code == (1 if any(faults.values()) else 0), result.output
    return faults


def test_installation_as_declared_has_no_faults(run: Mizan) -> None:
    assert _faults(run) == ALL_WELL
    assert run("doctor").output == (
        "PostgreSQL: nothing too wide, nothing missing\n"
        "Kafka: nothing too wide, nothing missing\n"
        "keys: nothing too wide, nothing missing\n"
    )


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (
            "grant select on webhook_secrets to mizan_checkout",
            "too wide: mizan_checkout may select webhook_secrets",
        ),
        ("grant update on audit_log to mizan_monitor", "too wide: mizan_monitor may update audit_log"),
        (
            "alter table audit_log disable trigger audit_log_append_only",
            "missing: the trigger that protects audit_log",
        ),
        ("revoke insert on outbox from mizan_api", "missing: mizan_api may not insert outbox"),
    ],
)
def test_rights_in_postgresql_that_differ_are_named(
    run: Mizan, database: Database, statement: str, fault: str
) -> None:
    with database.transaction() as connection:
        connection.execute(statement.encode())
    (line,) = _faults(run)["PostgreSQL"]
    assert line.startswith(fault)


def test_service_that_connects_with_another_role_is_named(
    run: Mizan, database_settings: DatabaseSettings
) -> None:
    """As one does that was not moved over to its own role."""
    own = as_role("mizan_api", database_settings)
    with (
        closing(psycopg.connect(own.url, application_name="mizan-api")),
        closing(psycopg.connect(database_settings.url, application_name="mizan-webhooks")) as wrong,
    ):
        assert _faults(run)["PostgreSQL"] == [f"too wide: mizan-webhooks is connected as {wrong.info.user}"]


def test_acl_that_nobody_needs_is_named(run: Mizan, all_topics: KafkaSettings) -> None:
    topic = f"{all_topics.topic_prefix}{WEBHOOKS_DEAD.name}"
    AccessAdmin(all_topics).create_acls([Acl(WEBHOOKS.name, "topic", topic, "read")])
    eventually(lambda: _faults(run)["Kafka"] == [f"too wide: mizan-webhooks may read topic {topic}"])


def test_acl_for_everybody_is_named(run: Mizan, all_topics: KafkaSettings) -> None:
    topic = f"{all_topics.topic_prefix}{WEBHOOKS_DEAD.name}"
    AccessAdmin(all_topics).create_acls([Acl("*", "topic", topic, "read")])
    eventually(lambda: _faults(run)["Kafka"] == [f"too wide: everybody may read topic {topic}"])


def test_acl_that_is_missing_is_named(run: Mizan, all_topics: KafkaSettings) -> None:
    topic = f"{all_topics.topic_prefix}{WEBHOOKS_DEAD.name}"
    AccessAdmin(all_topics).remove_acls([Acl(WEBHOOKS.name, "topic", topic, "write")])
    eventually(lambda: _faults(run)["Kafka"] == [f"missing: mizan-webhooks may write topic {topic}"])


def test_postgresql_that_is_down_does_not_keep_kafka_from_being_checked(run: Mizan) -> None:
    faults = _faults(run, DATABASE_URL="postgresql://mizan_cli:whispered@127.0.0.1:9/mizan")
    (line,) = faults.pop("PostgreSQL")
    assert line.startswith("not checked: ")
    assert "whispered" not in line
    assert faults == {"Kafka": [], "keys": []}


def test_one_part_can_be_checked_where_the_others_cannot_be_reached(run: Mizan) -> None:
    """As in the containers of compose: one reaches Kafka as its admin, and another one PostgreSQL."""
    only_kafka = run("doctor", "--only", "kafka", "--json", DATABASE_URL="postgresql://127.0.0.1:9/mizan")
    assert (only_kafka.exit_code, json.loads(only_kafka.output)) == (0, {"faults": {"Kafka": []}})
    others = ("--only", "keys", "--only", "postgresql")
    rest = run("doctor", *others, "--json", KAFKA_BOOTSTRAP_SERVERS="")
    assert (rest.exit_code, json.loads(rest.output)) == (0, {"faults": {"PostgreSQL": [], "keys": []}})


def test_kafka_that_is_down_does_not_keep_postgresql_from_being_checked(
    run: Mizan, database: Database
) -> None:
    with database.transaction() as connection:
        connection.execute("revoke insert on outbox from mizan_api")
    faults = _faults(run, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:9", KAFKA_CLIENT_SOCKET_TIMEOUT_MS="2000")
    (line,) = faults["Kafka"]
    assert line.startswith("not checked: ")
    assert "Kafka at 127.0.0.1:9" in line
    assert len(faults["PostgreSQL"]) == 1


def test_what_cannot_be_checked_is_no_success(run: Mizan) -> None:
    """For example with a password that Kafka does not accept."""
    (line,) = _faults(run, KAFKA_CLIENT_SASL_PASSWORD="wrong", KAFKA_CLIENT_SOCKET_TIMEOUT_MS="2000")["Kafka"]
    assert line.startswith("not checked: ")


def test_user_who_is_no_admin_is_told_so(run: Mizan, all_topics: KafkaSettings) -> None:
    """librdkafka would show that user no ACLs, and abort the process when it is asked for users."""
    (line,) = _faults(run, **kafka_variables(as_principal(all_topics, CLI)))["Kafka"]
    assert line.startswith("not checked: users and ACLs cannot be read: Broker: Cluster authorization failed")


def test_key_for_all_purposes_is_named(run: Mizan) -> None:
    (line,) = _faults(run, MIZAN_SECRET_KEYS=KEY)["keys"]
    assert line.startswith("too wide: MIZAN_SECRET_KEYS")

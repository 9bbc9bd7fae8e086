"""`mizan topics` creates Kafka's users and ACLs on a cluster, removes what is too wide, and verifies what is there."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from shared.domain.kafka_principals import ADMIN, ALL_PRINCIPALS, WEBHOOKS
from shared.domain.topics import WEBHOOKS_DEAD
from shared.platform.kafka.access import Acl, acls_of, password_file
from shared.platform.kafka.access_setup import AccessAdmin
from shared.platform.settings import KafkaSettings
from tests.engines import TestEngines
from tests.mizan.conftest import Mizan
from tests.topics import as_principal, delete_topic, kafka_variables
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("has_access_control")

GOOD = "topics, users and ACLs are as they should be\n"


@pytest.fixture
def environment(environment: dict[str, str], all_topics: KafkaSettings) -> dict[str, str]:
    """Those of the admin, on topics that exist and have no ACLs."""
    return {**environment, **kafka_variables(all_topics)}


@pytest.fixture
def access(all_topics: KafkaSettings) -> Iterator[AccessAdmin]:
    made = AccessAdmin(all_topics)
    yield made
    made.remove_acls(acl for acl in made.fetch_acls() if acl.name.startswith(all_topics.topic_prefix))


def test_admin_sets_the_acls_and_verifies_them(
    run: Mizan, access: AccessAdmin, all_topics: KafkaSettings
) -> None:
    before = run("topics", "--verify")
    assert before.exit_code == 1
    assert f"missing: mizan-webhooks may write topic {all_topics.topic_prefix}webhooks.dead" in before.stderr
    done = run("topics")
    assert (done.exit_code, done.stderr) == (0, "")
    eventually(lambda: run("topics", "--verify").exit_code == 0)
    assert run("topics", "--verify").stdout == GOOD
    assert "ACLs created" not in run("topics").stdout


def test_request_that_is_lost_while_a_cluster_starts_is_repeated(
    run: Mizan, access: AccessAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka forgets a broker that has not joined yet, and the request to it: the job failed for it once."""
    lost: Future[None] = Future()
    lost.set_exception(KafkaException(KafkaError(KafkaError._DESTROY_BROKER)))
    answers = [{"a filter": lost}]
    delete_acls = AdminClient.delete_acls

    def lose_one(client: AdminClient, *arguments: Any) -> Any:
        return answers.pop() if answers else delete_acls(client, *arguments)

    monkeypatch.setattr(AdminClient, "delete_acls", lose_one)
    done = run("topics")
    assert (done.exit_code, done.stderr, answers) == (0, "", [])


def test_acl_that_is_too_wide_is_named_and_removed(
    run: Mizan, access: AccessAdmin, all_topics: KafkaSettings
) -> None:
    run("topics")
    name = f"{all_topics.topic_prefix}checkout.verify"
    access.create_acls([Acl(WEBHOOKS.name, "topic", name, "write")])
    eventually(lambda: f"too wide: mizan-webhooks may write topic {name}" in run("topics", "--verify").stderr)
    assert f"ACL removed, it was too wide: mizan-webhooks may write topic {name}" in run("topics").stdout
    eventually(lambda: run("topics", "--verify").exit_code == 0)


def test_right_of_everybody_is_named_and_left_to_the_operator(
    run: Mizan, access: AccessAdmin, all_topics: KafkaSettings
) -> None:
    name = f"{all_topics.topic_prefix}webhooks.dead"
    access.create_acls([Acl("*", "topic", name, "read")])
    told = f"too wide: everybody may read topic {name}"
    eventually(lambda: told in run("topics").stderr)
    assert told in run("topics", "--verify").stderr


def test_verifying_creates_no_topic(run: Mizan, access: AccessAdmin, all_topics: KafkaSettings) -> None:
    run("topics")
    delete_topic(all_topics, WEBHOOKS_DEAD)
    answer = run("topics", "--verify")
    assert (answer.exit_code, "webhooks.dead: does not exist" in answer.stderr) == (1, True)
    assert "webhooks.dead: does not exist" in run("topics", "--verify").stderr


def test_users_get_their_passwords_from_files(
    run: Mizan, engines: TestEngines, access: AccessAdmin, tmp_path: Path
) -> None:
    """The same passwords again, so that others who use this Kafka notice nothing. Too short ones are refused."""
    assert engines.kafka_logins is not None
    assert all(access.fetch_users(each.name for each in ALL_PRINCIPALS).values())
    assert access.fetch_users(["mizan-nobody-else"]) == {"mizan-nobody-else": False}
    done = run("topics", "--passwords", str(engines.kafka_logins.directory))
    assert (done.exit_code, done.stderr) == (0, "")
    empty = run("topics", "--passwords", str(tmp_path))
    assert (empty.exit_code, "has no file with one of these names: kafka_admin" in empty.stderr) == (1, True)
    (tmp_path / password_file(ADMIN.name)).write_text("short")
    refused = run("topics", "--passwords", str(tmp_path))
    assert (refused.exit_code, "at least 16 characters" in refused.stderr) == (1, True)


def test_service_cannot_set_acls(run: Mizan, all_topics: KafkaSettings, engines: TestEngines) -> None:
    """The error says who is refused what."""
    assert engines.kafka_logins is not None
    own = kafka_variables(as_principal(all_topics, WEBHOOKS))
    answer = run("topics", "--passwords", str(engines.kafka_logins.directory), **own)
    assert answer.exit_code == 1
    assert "authorization failed" in answer.stderr.lower()
    assert "Traceback" not in answer.stderr


def test_declared_acls_are_all_literal(all_topics: KafkaSettings) -> None:
    """No principal has a right by a pattern, and only the admin has one on the cluster."""
    for principal in ALL_PRINCIPALS:
        found = acls_of(principal, all_topics.topic_prefix)
        assert {acl.pattern for acl in found} == {"literal"}
        assert ("cluster" in {acl.resource for acl in found}) is (principal is ADMIN)

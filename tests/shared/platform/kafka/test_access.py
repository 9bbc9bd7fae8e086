"""ACLs are compared with what the principals need: what is missing, too wide, for everybody, or denied."""

from datetime import timedelta

import pytest

from shared.platform.kafka.access import (
    AccessDifferences,
    Acl,
    Principal,
    acls_of,
    compare_access,
    open_listeners,
    password_file,
)
from shared.platform.kafka.topic_definition import Topic

WORK = Topic("work", 1, timedelta(days=1), key="id", group="workers")
WORKER = Principal("mizan-worker", consumes=(WORK,))
NEEDED = acls_of(WORKER, "a.")


def compare(*more: Acl, without: Acl | None = None) -> AccessDifferences:
    return compare_access([WORKER], "a.", (NEEDED | set(more)) - {without}, {WORKER.name: True})


def test_consumer_reads_its_topic_and_joins_its_group() -> None:
    assert {str(acl) for acl in NEEDED} == {
        "mizan-worker may read topic a.work",
        "mizan-worker may read group a.workers",
    }


def test_cluster_as_declared_has_no_differences() -> None:
    assert not compare()
    assert compare().lines() == []


def test_what_a_principal_needs_is_missing() -> None:
    acl = Acl("mizan-worker", "topic", "a.work", "read")
    assert compare(without=acl).lines() == ["missing: mizan-worker may read topic a.work"]


def test_user_without_a_password_is_missing() -> None:
    found = compare_access([WORKER], "a.", NEEDED, {WORKER.name: False})
    assert found.lines() == ["missing: the user mizan-worker with SCRAM-SHA-512"]
    assert not compare_access([WORKER], "a.", NEEDED, None)


@pytest.mark.parametrize(
    "acl",
    [
        Acl("mizan-worker", "topic", "a.work", "write"),
        Acl("mizan-worker", "topic", "a.other", "read"),
        Acl("mizan-worker", "topic", "*", "read"),
        Acl("mizan-worker", "topic", "a.", "read", pattern="prefixed"),
        Acl("mizan-worker", "topic", "a", "read", pattern="prefixed"),
        Acl("mizan-worker", "group", "a.others", "read"),
        Acl("mizan-worker", "cluster", "kafka-cluster", "alter"),
        Acl("mizan-worker", "topic", "a.work", "read", host="10.0.0.7"),
    ],
    ids=str,
)
def test_more_than_a_principal_needs_is_too_wide(acl: Acl) -> None:
    assert compare(acl).too_wide == (acl,)


@pytest.mark.parametrize(
    "acl",
    [
        Acl("mizan-worker", "topic", "b.work", "read"),
        Acl("mizan-worker", "topic", "b.", "read", pattern="prefixed"),
        Acl("reports", "topic", "a.work", "read"),
    ],
    ids=str,
)
def test_other_installations_and_other_users_are_left_alone(acl: Acl) -> None:
    assert not compare(acl)


@pytest.mark.parametrize("who", ["*", "ANONYMOUS"])
def test_right_of_everybody_is_reported_and_not_removed(who: str) -> None:
    found = compare(Acl(who, "topic", "a.work", "read"))
    assert (found.too_wide, found.lines()) == ((), ["too wide: everybody may read topic a.work"])


def test_denied_right_is_reported_and_not_removed() -> None:
    found = compare(Acl("mizan-worker", "topic", "a.work", "read", permission="deny"))
    assert (found.too_wide, found.lines()) == ((), ["denied: mizan-worker must not read topic a.work"])


def test_password_files_have_names_that_environment_variables_can_have() -> None:
    assert password_file("mizan-checkout-verifier") == "kafka_checkout_verifier"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"listeners": "SASL_SSL://:1,SASL_PLAINTEXT://:2"}, []),
        ({"listeners": "PLAINTEXT://:1, SASL_SSL://:2"}, ["PLAINTEXT://:1"]),
        (
            {
                "listeners": "CLIENT://:1,OLD://:2,CONTROLLER://:3",
                "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,OLD:PLAINTEXT, CONTROLLER:PLAINTEXT",
            },
            ["OLD://:2", "CONTROLLER://:3"],
        ),
        # A certificate of the client is a login, if the broker insists on it.
        ({"listeners": "SSL://:1", "ssl.client.auth": "none"}, ["SSL://:1"]),
        ({"listeners": "SSL://:1", "ssl.client.auth": "requested"}, ["SSL://:1"]),
        ({"listeners": "SSL://:1", "ssl.client.auth": "required"}, []),
        (
            {
                "listeners": "A://:1,B://:2",
                "listener.security.protocol.map": "A:SSL,B:SSL",
                "ssl.client.auth": "none",
                "listener.name.a.ssl.client.auth": "required",
            },
            ["B://:2"],
        ),
    ],
)
def test_listeners_without_a_login_are_found(config: dict[str, str], expected: list[str]) -> None:
    assert open_listeners(config) == expected

"""`MIZAN_TEST_STACK=docker` runs the tests on PostgreSQL and Kafka in containers."""

import sys

from tests.compose.compose_versions import Compose
from tests.compose.programs import run
from tests.compose.project import ROOT

TESTS = (
    "tests/shared/platform/kafka/test_topic_setup.py",
    "tests/shared/platform/kafka/test_producer.py",
    "tests/shared/platform/database/test_prepared_statements.py",
)


def test_tests_pass_on_engines_in_containers(composes: list[Compose]) -> None:
    """No container and no network remains."""
    assert composes
    output = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS,
        env={"MIZAN_TEST_STACK": "docker", "DATABASE_URL": "", "KAFKA_BOOTSTRAP_SERVERS": ""}, cwd=ROOT,
    )  # fmt: skip
    assert "passed" in output
    assert "that it must not kill" in output
    assert orphans() == []


def orphans() -> list[str]:
    of_testcontainers = ("--quiet", "--filter", "label=org.testcontainers=true")
    return [
        *run("docker", "ps", "--all", *of_testcontainers).split(),
        *run("docker", "network", "ls", *of_testcontainers).split(),
    ]

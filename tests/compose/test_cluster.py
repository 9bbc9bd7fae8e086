"""The profile `cluster`: three brokers and two of each worker; one of each may be lost and nobody notices."""

import pytest

from tests.compose.installation import Installation
from tests.compose.projects import Projects
from tests.compose.surroundings import ProgramFailedError


@pytest.fixture(scope="module")
def mizan(projects: Projects) -> Installation:
    project = projects.make(env_file="deploy/cluster.env")
    project.up()
    return Installation(project)


def test_one_of_each_may_be_lost(mizan: Installation) -> None:
    """A broker, an API, a checkout and a scheduler are gone, and stay away: payments and webhooks go on."""
    mizan.wait_delivered(mizan.paid_order())
    mizan.project.run("kill", "kafka-2", "api", "checkout-2", "scheduler", "webhooks-2")
    intents = [mizan.paid_order() for _ in range(4)]
    for intent in intents:
        mizan.wait_delivered(intent)
    mizan.project.up()
    mizan.wait_delivered(mizan.paid_order())
    mizan.audit()


def test_profile_alone_is_refused(projects: Projects) -> None:
    """Without the variables that go with it the brokers would not know of each other: one sentence says what to do."""
    project = projects.make(COMPOSE_PROFILES="cluster")
    with pytest.raises(ProgramFailedError, match=r"--env-file deploy/cluster\.env"):
        project.run("run", "--rm", "--no-deps", "-T", "cluster-check")

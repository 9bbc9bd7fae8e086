"""The profile `cluster`: three brokers and two of each worker. The loss of one of each has no effect."""

import pytest

from tests.compose.installation import Installation
from tests.compose.programs import ProgramFailedError
from tests.compose.project import Projects


@pytest.fixture(scope="module")
def mizan(projects: Projects) -> Installation:
    project = projects.make(env_file="deploy/cluster.env")
    project.up()
    return Installation(project)


def test_cluster_survives_the_loss_of_one_of_each(mizan: Installation) -> None:
    """Without one broker and one process each of the API, checkout, scheduler and webhooks, payments work."""
    mizan.wait_delivered(mizan.create_paid_intent())
    mizan.project.run("kill", "kafka-2", "api", "checkout-2", "scheduler", "webhooks-2")
    intents = [mizan.create_paid_intent() for _ in range(4)]
    for intent in intents:
        mizan.wait_delivered(intent)
    mizan.project.up()
    mizan.wait_delivered(mizan.create_paid_intent())
    mizan.audit()


def test_cluster_profile_without_its_settings_is_refused(projects: Projects) -> None:
    """The error names the missing env file. Without it, the brokers would not find each other."""
    project = projects.make(COMPOSE_PROFILES="cluster")
    with pytest.raises(ProgramFailedError, match=r"--env-file deploy/cluster\.env"):
        project.run("run", "--rm", "--no-deps", "-T", "cluster-check")

"""The compose files with docker-compose 1.29 of Debian are valid, and a payment succeeds."""

import pytest

from tests.compose.compose_versions import Compose
from tests.compose.installation import Installation
from tests.compose.project import Project, Projects

PRODUCTION = ("docker-compose.yml", "docker-compose.production.yml")
ADDRESSES = {f"{name}_PUBLIC_URL": "https://mizan.example" for name in ("API", "CHECKOUT", "DASHBOARD")}


@pytest.fixture(scope="module")
def old(composes: list[Compose]) -> Compose:
    found = next((compose for compose in composes if compose.major == 1), None)
    if found is None:
        pytest.skip("docker-compose 1.29 is not installed")
    return found


def test_payment_succeeds_with_docker_compose_1(old: Compose, projects: Projects) -> None:
    project = projects.make(compose=old)
    project.up()
    mizan = Installation(project)
    mizan.wait_delivered(mizan.create_paid_intent())
    mizan.audit()


def test_production_and_cluster_files_are_valid_with_docker_compose_1(old: Compose) -> None:
    Project(old, "mizan-proof-production", ADDRESSES, PRODUCTION).run("config", "--quiet")
    services = Project(old, "mizan-proof-cluster", {}, env_file="deploy/cluster.env").run(
        "config", "--services"
    )
    assert {"kafka-3", "webhooks-2"} <= set(services.split())

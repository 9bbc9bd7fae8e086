"""The profile `observability`: Prometheus scrapes every service and has our rules."""

import requests

from stack.services import SERVICES
from tests.compose.programs import run
from tests.compose.project import Project
from tests.waiting import eventually


def test_prometheus_scrapes_every_service_and_loads_the_rules(project: Project) -> None:
    project.run("up", "-d", "--no-build", "--no-deps", "prometheus")
    eventually(lambda: not project.unhealthy(), within=120, every=0.5)
    api = f"{project.url('PROMETHEUS_PORT')}/api/v1"

    def seen() -> set[str]:
        targets = requests.get(f"{api}/targets", timeout=10).json()["data"]["activeTargets"]
        return {target["labels"]["job"] for target in targets if target["health"] == "up"}

    eventually(lambda: seen() == {service.name for service in SERVICES}, within=90, every=0.5)
    groups = requests.get(f"{api}/rules", timeout=10).json()["data"]["groups"]
    assert any(rule["type"] == "alerting" for group in groups for rule in group["rules"])
    project.run("rm", "--stop", "--force", "prometheus")
    # `down` does not remove volumes of an inactive profile.
    run("docker", "volume", "rm", f"{project.name}_prometheus")

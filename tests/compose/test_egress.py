"""docker-compose.egress.yml: webhooks reach nothing outside but the proxy, which refuses names and private networks.

Its images have no stand-ins: without them these tests are skipped.
"""

import json
from dataclasses import replace

import pytest

from tests.compose.programs import ProgramFailedError, run
from tests.compose.project import FIND_ROUTE, Project, Projects
from tests.containers.compose_files import DEVELOPMENT, EGRESS, PROJECT, interpolate, read_env_file, services
from tests.containers.reachability import with_egress_proxy

# Prints the status line of the proxy for each target.
_ASK = """
import json, socket, sys
for target in json.loads(sys.argv[1]):
    with socket.create_connection(("egress-proxy", 3128), timeout=15) as connection:
        connection.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
        print(connection.recv(65536).split(b" ")[1].decode())
"""
_REFUSED = [
    "127.0.0.1:443",
    "10.0.0.1:443",
    "169.254.169.254:443",
    "[::1]:443",
    "example.com:443",
    "93.184.216.34:22",
]


@pytest.fixture(scope="module")
def project(projects: Projects) -> Project:
    for name in ("egress-proxy", "egress-resolver"):
        image = interpolate(services(EGRESS)[name]["image"])
        try:
            run("docker", "pull", "--quiet", image)
        except ProgramFailedError:
            pytest.skip(f"the image {image} cannot be pulled")
    variables = read_env_file(PROJECT / "deploy" / "egress.env")
    made = projects.make(files=(DEVELOPMENT.name, EGRESS.name), WEBHOOK_NETWORK=variables["WEBHOOK_NETWORK"])
    made.up()
    return made


def test_webhooks_have_no_default_route(project: Project) -> None:
    assert project.inside("webhooks", "python", "-c", FIND_ROUTE).strip() == "none"


def test_containers_are_in_the_networks_of_the_files(project: Project) -> None:
    files = with_egress_proxy(DEVELOPMENT)
    for container in project.containers():
        if container.status == "healthy":
            networks = container.facts["NetworkSettings"]["Networks"]
            found = {name.removeprefix(f"{project.name}_") for name in networks}
            assert found == files.networks_of[container.service], container.service


def test_proxy_refuses_what_is_not_a_public_address_on_443(project: Project) -> None:
    answers = project.inside("webhooks", "python", "-c", _ASK, json.dumps(_REFUSED)).split()
    assert dict(zip(_REFUSED, answers, strict=True)) == dict.fromkeys(_REFUSED, "403")


def test_names_of_containers_are_still_found(project: Project) -> None:
    """Docker's resolver answers for them, and asks the given one for the rest."""
    for name in ("postgres", "kafka", "egress-proxy"):
        project.inside("webhooks", "python", "-c", f"import socket; socket.getaddrinfo({name!r}, 1)")


def test_overlay_without_its_network_is_refused(projects: Projects) -> None:
    project = projects.make(files=(DEVELOPMENT.name, EGRESS.name), WEBHOOK_NETWORK="egress")
    without = replace(project, settings={**project.settings, "WEBHOOK_NETWORK": ""})
    with pytest.raises(ProgramFailedError, match="WEBHOOK_NETWORK=egress"):
        without.run("config", "-q")

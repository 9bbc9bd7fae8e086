"""Containers reach exactly those that the files say, which tests/containers/test_networks.py compares with the docs."""

import json

import pytest

from tests.compose.programs import run
from tests.compose.project import FIND_ROUTE, Container, Project
from tests.containers.reachability import Deployment, development

# Prints those of the given addresses that accept a connection. A dropped packet is never answered.
_CONNECT = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def connect(target):
    try:
        socket.create_connection(target, timeout=2).close()
    except OSError:
        return
    print(target[0] + "\\n", end="")
with ThreadPoolExecutor(64) as threads:
    list(threads.map(connect, map(tuple, json.loads(sys.argv[1]))))
"""
# Bash is in the images of the engines, Python is not.
_CONNECT_BY_BASH = (
    'for one in "$@"; do timeout 1 bash -c "</dev/tcp/$one" 2>/dev/null && echo "${one%/*}"; done; true'
)
_PORTS = {"postgres": 5432, "kafka": 9092}
_ENGINES = frozenset(_PORTS)
_WITHOUT_TOOLS = frozenset({"proxy"})


@pytest.fixture(scope="module")
def files() -> Deployment:
    return development()


@pytest.fixture(scope="module")
def running(project: Project) -> dict[str, Container]:
    return {
        container.service: container
        for container in project.containers()
        if container.status == "healthy" and container.service != "prometheus"
    }


def addresses_of(container: Container) -> list[str]:
    return [network["IPAddress"] for network in container.facts["NetworkSettings"]["Networks"].values()]


def port_of(project: Project, container: Container) -> int:
    if container.service == "proxy":
        return int(project.ports["API_PORT"])
    variables = dict(text.split("=", 1) for text in container.facts["Config"]["Env"])
    return _PORTS.get(container.service) or int(variables["HTTP_PORT"])


def test_containers_are_in_the_networks_of_the_files(
    project: Project, running: dict[str, Container], files: Deployment
) -> None:
    for name, container in running.items():
        found = {
            network.removeprefix(f"{project.name}_")
            for network in container.facts["NetworkSettings"]["Networks"]
        }
        assert found == files.networks_of[name], name


def test_every_pair_of_containers_connects_only_if_the_files_say_so(
    project: Project, running: dict[str, Container], files: Deployment
) -> None:
    """Each tries every address of every other one, also those in networks that it is not in."""
    targets = [
        (address, port_of(project, container))
        for container in running.values()
        for address in addresses_of(container)
    ]
    names = {address: name for name, container in running.items() for address in addresses_of(container)}
    for name, container in running.items():
        if name in _WITHOUT_TOOLS:
            continue
        if name in _ENGINES:
            listed = [f"{address}/{port}" for address, port in targets]
            output = run("docker", "exec", container.id, "bash", "-c", _CONNECT_BY_BASH, "bash", *listed)
        else:
            output = run("docker", "exec", container.id, "python", "-c", _CONNECT, json.dumps(targets))
        reached = {names[address] for address in output.split()} - {name}
        assert reached == files.reachable_from(name) & running.keys(), name


def test_only_networks_with_a_way_out_have_a_default_route(
    running: dict[str, Container], files: Deployment
) -> None:
    """The operators' network has a route, for its published ports, but no address translation."""
    for name, container in running.items():
        if name in _WITHOUT_TOOLS | _ENGINES or "operators" in files.networks_of[name]:
            continue
        found = run("docker", "exec", container.id, "python", "-c", FIND_ROUTE)
        assert (found.strip() == "found") is bool(files.ways_out(name)), name


def test_operators_network_does_not_masquerade(project: Project) -> None:
    (network,) = json.loads(run("docker", "network", "inspect", f"{project.name}_operators"))
    assert network["Options"]["com.docker.network.bridge.enable_ip_masquerade"] == "false"

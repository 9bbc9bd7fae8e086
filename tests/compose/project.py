"""Compose projects: the whole of Mizan in containers, each with its own name, ports and volumes."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from stack.ports import find_free_ports
from tests.compose.compose_versions import Compose
from tests.compose.programs import ProgramFailedError, run
from tests.waiting import eventually

PREFIX = "mizan-proof-"
# A program for a container. No packet is sent: the kernel looks for a route to an address that nobody has (TEST-NET-1).
FIND_ROUTE = """
import socket
try:
    socket.socket(type=socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
except OSError:
    print("none")
else:
    print("found")
"""


def remove_orphans() -> list[str]:
    """Remove containers, networks and volumes that killed test runs have left. Return their names."""
    containers = _list_names("ps", "--all", "--format", "{{.Names}}")
    networks = _list_names("network", "ls", "--format", "{{.Name}}")
    volumes = _list_names("volume", "ls", "--format", "{{.Name}}")
    for kind, names in (("container", containers), ("network", networks), ("volume", volumes)):
        if names:
            force = [] if kind == "network" else ["--force"]
            run("docker", kind, "rm", *force, *names)
    return [*containers, *networks, *volumes]


def _list_names(*command: str) -> list[str]:
    return [name for name in run("docker", *command).split() if PREFIX in name]


ROOT = Path(__file__).parents[2]
MIZAN_IMAGE = "mizan:proof"
UP_SECONDS = 400
_PORTS = ("API_PORT", "CHECKOUT_PORT", "DASHBOARD_PORT", "MONITOR_PORT", "SHOP_PORT", "PROMETHEUS_PORT")


@dataclass(frozen=True, slots=True)
class Container:
    """A container, as `docker inspect` describes it."""

    facts: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.facts["Id"])

    @property
    def service(self) -> str:
        return str(self.facts["Config"]["Labels"]["com.docker.compose.service"])

    @property
    def status(self) -> str:
        """The result of the health check (healthy, starting, unhealthy), or the state of Docker with the exit code."""
        state = self.facts["State"]
        if state["Status"] == "running":
            return str(state.get("Health", {}).get("Status", "running"))
        return f"{state['Status']} {state['ExitCode']}"

    @property
    def started_at(self) -> str:
        return str(self.facts["State"]["StartedAt"])


def free_ports() -> dict[str, str]:
    return {name: str(port) for name, port in zip(_PORTS, find_free_ports(len(_PORTS)), strict=True)}


@dataclass(frozen=True, slots=True)
class Project:
    compose: Compose
    name: str
    settings: Mapping[str, str]
    files: tuple[str, ...] = ("docker-compose.yml",)
    env_file: str | None = None
    ports: Mapping[str, str] = field(default_factory=free_ports)

    def run(self, *arguments: str, within: float = UP_SECONDS) -> str:
        files = [word for file in self.files for word in ("-f", file)]
        env_file = ["--env-file", self.env_file] if self.env_file else []
        env = {"MIZAN_IMAGE": MIZAN_IMAGE, **self.ports, **self.settings, "DOCKER_BUILDKIT": "0"}
        return run(
            *self.compose.command, "-p", self.name, *files, *env_file, *arguments,
            env=env, within=within, cwd=ROOT,
        )  # fmt: skip

    def up(self, *services: str) -> None:
        """Start the project and wait until all containers are healthy or done. The error shows the logs of others."""
        try:
            self.run("up", "-d", "--no-build", *services)
            eventually(lambda: not self.unhealthy(), within=UP_SECONDS, every=0.5)
        except (ProgramFailedError, AssertionError) as error:
            raise AssertionError(f"{error}\n{self.unhealthy_logs()}") from error

    def down(self) -> None:
        """Remove containers and networks, but keep the data."""
        self.run("down", "--remove-orphans")

    def destroy(self) -> None:
        self.run("down", "--volumes", "--remove-orphans", "--timeout", "10")

    def containers(self) -> list[Container]:
        ids = run("docker", "ps", "-aq", "--filter", f"label=com.docker.compose.project={self.name}").split()
        return [Container(facts) for facts in json.loads(run("docker", "inspect", *ids))] if ids else []

    def container(self, service: str) -> Container:
        (found,) = [container for container in self.containers() if container.service == service]
        return found

    def unhealthy(self) -> dict[str, str]:
        """Return the services that are neither healthy nor done with exit code 0."""
        statuses = {container.service: container.status for container in self.containers()}
        return {name: status for name, status in statuses.items() if status not in {"healthy", "exited 0"}}

    def unhealthy_logs(self) -> str:
        return "\n".join(
            f"-- {name} is {status}:\n{self.log(name)}" for name, status in self.unhealthy().items()
        )

    def log(self, service: str, lines: int = 30) -> str:
        return self.run("logs", "--no-color", f"--tail={lines}", service)

    def inside(self, service: str, *command: str) -> str:
        """Run a command in the container of a service, and return its output."""
        return run("docker", "exec", self.container(service).id, *command)

    def command_line(self, *arguments: str) -> str:
        """Run `mizan` with the role of the command line, and return its output."""
        return self.run("run", "--rm", "--no-deps", "-T", "cli", "mizan", *arguments)

    def kill(self, service: str) -> Container:
        """Kill the process from outside, so that Docker handles it as a crash and not as a request to stop."""
        container = self.container(service)
        os.kill(container.facts["State"]["Pid"], 9)
        return container

    def wait_restarted(self, before: Container) -> None:
        def is_back() -> bool:
            now = self.container(before.service)
            return now.started_at != before.started_at and now.status == "healthy"

        eventually(is_back, within=90, every=0.3)

    def url(self, port: str) -> str:
        return f"http://127.0.0.1:{self.ports[port]}"


@dataclass(slots=True)
class Projects:
    compose: Compose
    _made: list[Project] = field(default_factory=list)

    def make(
        self,
        *,
        compose: Compose | None = None,
        files: tuple[str, ...] = ("docker-compose.yml",),
        env_file: str | None = None,
        **settings: str,
    ) -> Project:
        name = f"{PREFIX}{uuid4().hex[:8]}"
        project = Project(compose or self.compose, name, settings, files, env_file)
        self._made.append(project)
        return project

    def destroy(self) -> None:
        while self._made:
            self._made.pop().destroy()

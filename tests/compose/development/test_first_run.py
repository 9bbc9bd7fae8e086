"""`docker compose up` as a newcomer runs it: everything works, and only local ports are published."""

import socket
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from stack.services import SERVICES
from tests.compose.installation import Installation
from tests.compose.programs import ProgramFailedError, run
from tests.compose.project import Project
from tests.page_client import PageClient
from tests.waiting import eventually

ONE_SHOTS = {"secrets", "roles", "migrate", "topics", "demo"}
ENGINES = {"postgres", "kafka"}
OPERATIONS = ("/metrics", "/readyz", "/healthz", "//metrics", "/metrics/", "/%6detrics", "/x/../metrics")
MONITORS = "mizan operator create"
"""A text that only its sign-in page contains."""
PUBLIC = ("API_PORT", "CHECKOUT_PORT", "DASHBOARD_PORT", "SHOP_PORT")


def test_all_containers_are_healthy_after_the_first_run(project: Project) -> None:
    """All services, engines, the shop and the proxy are healthy, and the jobs exited with 0."""
    statuses = {container.service: container.status for container in project.containers()}
    running = {service.name for service in SERVICES} | ENGINES | {"shop", "proxy"}
    assert statuses == dict.fromkeys(running, "healthy") | dict.fromkeys(ONE_SHOTS, "exited 0")


def test_payment_and_its_webhook_succeed(mizan: Installation) -> None:
    """§1: created by API, paid on the hosted checkout, reported by a signed webhook that the shop accepts."""
    intent = mizan.create_intent()
    assert intent["checkout_url"].startswith(mizan.project.url("CHECKOUT_PORT"))
    customer = mizan.pay(intent)
    assert customer.answer.status_code == 200
    assert mizan.status(intent) == "succeeded"
    mizan.wait_delivered(intent)


def test_expired_intent_is_canceled_and_the_shop_notified(mizan: Installation) -> None:
    """§3"""
    intent = mizan.create_intent()
    mizan.let_expire(intent)
    eventually(lambda: mizan.status(intent) == "canceled", every=0.5)
    mizan.wait_delivered(intent)


@pytest.mark.parametrize(("port", "who"), [("DASHBOARD_PORT", "owner"), ("MONITOR_PORT", "operator")])
def test_demo_owner_and_operator_can_sign_in(mizan: Installation, port: str, who: str) -> None:
    demo = mizan.demo()
    person = PageClient(mizan.project.url(port))
    answer = person.sign_in(demo[f"{who}_email"], demo[f"{who}_password"])
    assert answer.status_code == 200
    assert urlsplit(answer.url).path != "/sign-in"
    person.close()


@pytest.mark.parametrize("port", PUBLIC)
def test_proxy_does_not_serve_operations_pages(project: Project, port: str) -> None:
    """In any spelling of the path. Public paths respond."""
    assert status_of(int(project.ports[port]), "/") != 503
    answers = {path: status_of(int(project.ports[port]), path) for path in OPERATIONS}
    assert {path for path, status in answers.items() if status in {200, 503}} == set()


def test_proxy_does_not_serve_the_monitor(project: Project) -> None:
    """Not even by its host name, on any port of the proxy."""
    monitor = int(project.ports["MONITOR_PORT"])
    assert MONITORS in ask(monitor, "/sign-in?lang=en", f"127.0.0.1:{monitor}")
    for port in PUBLIC:
        for host in ("monitor", "monitor:8004", f"127.0.0.1:{monitor}"):
            assert MONITORS not in ask(int(project.ports[port]), "/sign-in?lang=en", host)


def test_ports_are_published_on_loopback_only(project: Project) -> None:
    """Those of the proxy and the monitor. No engine has one."""
    published = {
        (container.service, binding["HostIp"], binding["HostPort"])
        for container in project.containers()
        for bindings in (container.facts["NetworkSettings"]["Ports"] or {}).values()
        for binding in bindings or ()
    }
    doors = {("proxy", "127.0.0.1", project.ports[port]) for port in PUBLIC}
    assert published == doors | {("monitor", "127.0.0.1", project.ports["MONITOR_PORT"])}


def test_no_container_runs_as_root(project: Project) -> None:
    running = [container for container in project.containers() if container.status == "healthy"]
    accounts = {
        container.service: {
            int(line.split()[1])
            for line in run("docker", "top", container.id, "-eo", "pid,uid").splitlines()[1:]
        }
        for container in running
    }
    assert {name for name, uids in accounts.items() if 0 in uids} == set()


def test_containers_are_read_only_and_unprivileged(project: Project) -> None:
    """Our containers and the proxy cannot change files of their image, and have no capabilities."""
    for container in project.containers():
        if container.status != "healthy" or container.service in ENGINES:
            continue
        for place in ("/x", "/usr/bin/x", "/etc/x"):
            with pytest.raises(ProgramFailedError, match="Read-only file system"):
                run("docker", "exec", container.id, "touch", place)
        host = container.facts["HostConfig"]
        assert host["CapDrop"] == ["ALL"], container.service
        assert "no-new-privileges:true" in host["SecurityOpt"], container.service
        assert not host["Privileged"]


def test_production_environment_is_refused_by_the_development_file(project: Project) -> None:
    """The error lists all problems."""
    production = replace(project, settings={**project.settings, "MIZAN_ENV": "production"})
    with pytest.raises(ProgramFailedError) as refused:
        production.run("run", "--rm", "--no-deps", "-T", "api")
    told = str(refused.value)
    for name in (
        "API_PUBLIC_URL",
        "CHECKOUT_PUBLIC_URL",
        "DATABASE_URL",
        "WEBHOOK_ALLOW_PRIVATE",
        "demo data",
    ):
        assert name in told


def status_of(port: int, path: str) -> int:
    return int(ask(port, path, f"127.0.0.1:{port}").split()[1])


def ask(port: int, path: str, host: str) -> str:
    """Send the path unchanged, which an HTTP client would normalise. Return nothing if the connection is dropped."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

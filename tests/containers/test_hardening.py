"""The compose files restrict ports, file systems and secrets."""

import re
import runpy
from pathlib import Path

import pytest

from shared.platform.database.roles import OWNER
from stack.services import JOBS, SERVICES, Job, Service
from tests.containers.compose_files import (
    DEVELOPMENT,
    PRODUCTION,
    PROJECT,
    environment,
    interpolate,
    our_services,
    read_compose_file,
    services,
)
from tests.containers.reachability import base_name

VOLUMES = {"demo": "cli"}
"""A job with the secrets of another one: it is a command of the command line."""
VOLUME_DIRECTORY = "/var/lib/mizan/secrets"


def test_only_the_proxy_and_local_operator_ports_are_published() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert published.keys() == {"proxy", "monitor", "prometheus", "grafana"}
    for ports in published.values():
        assert all(interpolate(port).startswith("127.0.0.1:") for port in ports)
    open_in_production = {
        name: service["ports"] for name, service in services(PRODUCTION).items() if "ports" in service
    }
    assert open_in_production.keys() == {"public-proxy"}
    assert [interpolate(port) for port in open_in_production["public-proxy"]] == [
        "0.0.0.0:80:80",
        "0.0.0.0:443:443",
    ]


@pytest.mark.parametrize("name", sorted(our_services().keys() | {"proxy", "public-proxy"}))
def test_our_containers_are_read_only_and_unprivileged(name: str) -> None:
    service = services().get(name) or services(PRODUCTION)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("user", "10001:10001") == "10001:10001"
    assert not service.get("privileged")
    writable = [mount for mount in service.get("volumes", ()) if not mount.endswith(":ro")]
    assert all(re.fullmatch(r"[a-z-]+:/var/lib/[a-z/-]+", mount) for mount in writable)


def test_every_service_gets_only_its_own_secrets() -> None:
    """The volume with all secrets is mounted by the job that makes them, and by nothing else."""
    mounts = {
        name: [mount for mount in service.get("volumes", ()) if mount.startswith("secrets")]
        for name, service in services().items()
    }
    makers = mounts.pop("secrets")
    for name, own in mounts.items():
        assert len(own) <= 1, name
        assert not own or own[0].startswith(f"secrets-{VOLUMES.get(name, base_name(name))}:"), name
    shared = {mount.partition(":")[0] for own in mounts.values() for mount in own}
    assert {mount.partition(":")[0] for mount in makers} == {"secrets", *shared}
    assert {mount.rpartition("/")[2] for mount in makers if "/services/" in mount} == shared_files().keys()
    assert set(read_compose_file()["volumes"]) >= shared


@pytest.mark.parametrize("name", sorted(our_services().keys() - {"secrets"}))
def test_secrets_of_a_service_are_exactly_those_that_its_settings_name(name: str) -> None:
    """In its volume in development, as Docker secrets in production. The job that sets Kafka's passwords has all."""
    own = shared_files().get(VOLUMES.get(name, base_name(name)), {})
    named = {
        value
        for key, value in environment(name).items()
        if key.endswith("_FILE") and value.startswith(VOLUME_DIRECTORY)
    }
    if name in {"roles", "topics"}:
        named |= {f"{VOLUME_DIRECTORY}/{file}" for file in own if file.startswith(("kafka_", "role_"))}
    if name == "demo":
        own = {file: own[file] for file in own if f"{VOLUME_DIRECTORY}/{file}" in named}
    assert named == {f"{VOLUME_DIRECTORY}/{file}" for file in own}
    in_production = services(PRODUCTION).get(name, {})
    if in_production.get("profiles") != ["never"]:
        assert set(in_production.get("secrets", ())) == set(own.values())


def test_only_the_job_that_prepares_roles_has_the_login_of_the_superuser() -> None:
    with_admin = {name for name, own in shared_files().items() if "database_admin_url" in own.values()}
    assert with_admin == {"roles"}
    production = services(PRODUCTION)
    assert [
        name for name, service in production.items() if "database_admin_url" in service.get("secrets", ())
    ] == ["roles"]


@pytest.mark.parametrize("service", [*SERVICES, *JOBS], ids=lambda service: service.name)
def test_every_service_logs_in_to_the_database_with_its_own_role(service: Service | Job) -> None:
    login = {None: None, OWNER: "database_url"}.get(
        service.database_role, f"database_url_{str(service.database_role).removeprefix('mizan_')}"
    )
    assert shared_files()[service.name].get("database_url") == login


def test_volumes_belong_to_the_account_of_our_image() -> None:
    """A volume gets the owner of the directory that it is mounted over for the first time."""
    image = (PROJECT / "Dockerfile").read_text()
    for name in shared_files():
        assert re.search(rf"\bservices/{name}\b(?!-)", image), "the volume would belong to root"


def shared_files() -> dict[str, dict[str, str]]:
    """Return the files of each service, and which secret each is."""
    files: dict[str, dict[str, str]] = runpy.run_path(str(PROJECT / "deploy" / "make_secrets.py"))["FILES"]
    return files


@pytest.mark.parametrize("path", [DEVELOPMENT, PRODUCTION], ids=lambda path: path.name)
def test_no_secret_is_in_the_compose_files(path: Path) -> None:
    for name, service in services(path).items():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY", key):
                is_path = key.endswith("_FILE") and (value == "" or str(value).startswith(("/run/", "/var/")))
                assert is_path or re.fullmatch(r"\$\{\w+:-\}", str(value)), f"{name}: {key}"

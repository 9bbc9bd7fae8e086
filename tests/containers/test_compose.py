"""docker-compose.yml starts the same services and jobs as `make run`."""

import re

import pytest

from stack.services import JOBS, SERVICES, SHOP, Service
from tests.containers.compose_files import (
    DEVELOPMENT,
    NOT_OURS,
    PRODUCTION,
    PROJECT,
    job_services,
    our_services,
    services,
)


@pytest.mark.parametrize("service", [*SERVICES, SHOP], ids=lambda service: service.name)
def test_every_service_of_the_stack_is_in_the_compose_file(service: Service) -> None:
    """With the same command, port and packages. The directory for its workers' metrics is empty at every start."""
    container = services()[service.name]
    assert tuple(container["command"]) == ("python", *service.command[1:])
    assert container["environment"]["HTTP_PORT"] == str(8000 + service.port_offset)
    packages = f"/app:/app/{service.package_directory}" if service.package_directory else None
    assert container["environment"].get("PYTHONPATH") == packages
    directory = container["environment"].get("PROMETHEUS_MULTIPROC_DIR")
    assert (directory is not None) is service.has_workers
    assert directory is None or any(
        mount.startswith(f"{directory}:uid=10001,") for mount in container["tmpfs"]
    )


def test_every_job_runs_once_before_the_services_that_need_it() -> None:
    for job in JOBS:
        words = ("python", *job.command[1:])
        assert tuple(services()[job.name]["command"])[: len(words)] == words
        assert job.name in job_services()
    assert job_services() == {"secrets", "roles", "migrate", "topics", "demo", "cli", "cluster-check"}
    consumers = {
        name for name in our_services() if name.partition("-2")[0] in {"webhooks", "scheduler", "monitor"}
    }
    for name in consumers:
        waits_for = services()[name]["depends_on"]
        assert all(waits_for[job.name]["condition"] == "service_completed_successfully" for job in JOBS)


def test_dependencies_of_services_exist() -> None:
    """In production, no service depends on one that does not run there."""
    absent = {name for name, service in services(PRODUCTION).items() if service.get("profiles") == ["never"]}
    for name in services().keys() | services(PRODUCTION).keys():
        wanted = {**services().get(name, {}), **services(PRODUCTION).get(name, {})}.get("depends_on", {})
        assert wanted.keys() <= services().keys()
        assert name in absent or not wanted.keys() & absent, name


def test_all_services_have_memory_limits_and_bounded_logs() -> None:
    for name, service in {**services(PRODUCTION), **services()}.items():
        assert service["mem_limit"], name
        assert service["logging"]["options"]["max-size"], name
        assert service["restart"] == ("no" if name in job_services() else "unless-stopped"), name


def test_all_long_running_services_have_health_checks() -> None:
    """Our services use the check of the image. Only jobs may disable it."""
    image = (PROJECT / "Dockerfile").read_text()
    assert "HEALTHCHECK" in image
    for name, service in services().items():
        if name in NOT_OURS:
            assert service["healthcheck"]["test"][0] == "CMD", name
        else:
            assert ("healthcheck" in service) is (name in job_services()), name


def test_every_image_is_pinned_and_can_be_replaced() -> None:
    for path in (DEVELOPMENT, PRODUCTION):
        for name, service in services(path).items():
            if image := service.get("image"):
                found = re.fullmatch(r"\$\{[A-Z]+_IMAGE:-(.+)\}", image)
                assert found, name
                assert found[1] == "mizan" or re.search(r":v?\d", found[1]), f"{name} is not pinned"
    assert "${PYTHON_IMAGE:-" in services()["secrets"]["build"]["args"]["PYTHON_IMAGE"]
    assert [name for name, service in services().items() if "build" in service] == ["secrets"]

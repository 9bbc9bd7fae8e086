"""The compose files restrict ports, file systems and secrets."""

import re
from pathlib import Path

import pytest

from tests.containers.compose_files import (
    DEVELOPMENT,
    PRODUCTION,
    interpolate,
    our_services,
    services,
)


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
    writable = [mount for mount in service["volumes"] if not mount.endswith(":ro")]
    assert all(re.fullmatch(r"[a-z-]+:/var/lib/[a-z/_]+", mount) for mount in writable)


@pytest.mark.parametrize("path", [DEVELOPMENT, PRODUCTION], ids=lambda path: path.name)
def test_no_secret_is_in_the_compose_files(path: Path) -> None:
    for name, service in services(path).items():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY", key):
                is_path = key.endswith("_FILE") and (value == "" or str(value).startswith(("/run/", "/var/")))
                assert is_path or re.fullmatch(r"\$\{\w+:-\}", str(value)), f"{name}: {key}"

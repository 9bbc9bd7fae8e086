"""What the compose files keep shut: ports, networks, file systems, secrets."""

import re
from pathlib import Path

import pytest

from tests.containers.compose_files import (
    DEVELOPMENT,
    ENGINES,
    PRODUCTION,
    interpolated,
    ours,
    services,
    whole,
)


def test_nothing_is_published_but_the_proxy_and_what_operators_see_from_this_machine() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert published.keys() == {"proxy", "monitor", "prometheus", "grafana"}
    for ports in published.values():
        assert all(interpolated(port).startswith("127.0.0.1:") for port in ports)
    open_in_production = {
        name: service["ports"] for name, service in services(PRODUCTION).items() if "ports" in service
    }
    assert open_in_production.keys() == {"public-proxy"}
    assert [interpolated(port) for port in open_in_production["public-proxy"]] == [
        "0.0.0.0:80:80",
        "0.0.0.0:443:443",
    ]


def test_engines_have_neither_a_way_out_nor_a_way_in() -> None:
    networks = whole()["networks"]
    assert networks["inside"]["internal"] is True
    assert networks["front"]["internal"] is True
    assert all(services()[name]["networks"] == ["inside"] for name in ENGINES)
    assert set(services()["proxy"]["networks"]) == {"front", "public"}
    assert "front" not in services()["monitor"]["networks"]


def test_only_who_calls_others_has_the_way_out() -> None:
    """Merchants' endpoints, providers, the mail server; and the shop, which stands for a merchant."""
    with_way_out = {name for name, service in services().items() if "outside" in service.get("networks", ())}
    assert {name.removesuffix("-2") for name in with_way_out} == {
        "webhooks",
        "checkout",
        "checkout-verifier",
        "dashboard",
        "shop",
    }


@pytest.mark.parametrize("name", sorted(ours().keys() | {"proxy", "public-proxy"}))
def test_ours_can_write_nowhere_and_gain_nothing(name: str) -> None:
    service = services().get(name) or services(PRODUCTION)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service.get("user", "10001:10001") == "10001:10001"
    assert not service.get("privileged")
    writable = [mount for mount in service["volumes"] if not mount.endswith(":ro")]
    assert all(re.fullmatch(r"[a-z]+:/var/lib/[a-z/]+", mount) for mount in writable)


@pytest.mark.parametrize("path", [DEVELOPMENT, PRODUCTION], ids=lambda path: path.name)
def test_no_secret_is_written_down(path: Path) -> None:
    for name, service in services(path).items():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY", key):
                is_path = key.endswith("_FILE") and (value == "" or str(value).startswith(("/run/", "/var/")))
                assert is_path or re.fullmatch(r"\$\{\w+:-\}", str(value)), f"{name}: {key}"

"""docker-compose.egress.yml: webhooks have no way out but the proxy, which connects to public addresses on 443 only."""

import re
from ipaddress import ip_network
from pathlib import Path

import pytest
import yaml

from shared.platform import outbound_url
from shared.platform.settings import ProxySettings
from shared.platform.settings.proxy_url import parse_proxy_url
from tests.containers.compose_files import (
    DEVELOPMENT,
    EGRESS,
    PRODUCTION,
    PROJECT,
    environment,
    interpolate,
    read_env_file,
    services,
)
from tests.containers.reachability import Deployment, base_name, development, production, with_egress_proxy
from tests.containers.test_networks import names_in, table_of

VARIABLES = read_env_file(PROJECT / "deploy" / "egress.env")
NEW = {"egress-proxy", "egress-resolver"}
DEPLOYMENTS = {
    "development": (with_egress_proxy(DEVELOPMENT), development()),
    "production": (with_egress_proxy(DEVELOPMENT, PRODUCTION), production()),
}


@pytest.fixture(params=list(DEPLOYMENTS.values()), ids=list(DEPLOYMENTS))
def deployments(request: pytest.FixtureRequest) -> tuple[Deployment, Deployment]:
    """With the proxy, and without."""
    found: tuple[Deployment, Deployment] = request.param
    return found


def test_webhooks_have_no_way_out_but_the_proxy(deployments: tuple[Deployment, Deployment]) -> None:
    """Nor has their resolver's network one."""
    proxied, _ = deployments
    for name in ("webhooks", "webhooks-2"):
        assert proxied.ways_out(name) == set()
        assert proxied.networks_of[name] & proxied.networks_of["egress-proxy"] == {"egress"}
    assert proxied.members("egress") == {"webhooks", "webhooks-2"} | NEW
    assert {base_name(name) for name in proxied.members("merchants")} - {"shop"} == NEW


def test_everything_else_is_as_without_the_proxy(deployments: tuple[Deployment, Deployment]) -> None:
    proxied, direct = deployments
    for name in direct.networks_of.keys() - {"webhooks", "webhooks-2"}:
        assert proxied.networks_of[name] == direct.networks_of[name], name
    assert proxied.networks_of.keys() == direct.networks_of.keys() | NEW


def test_table_of_pairs_with_the_proxy_is_complete() -> None:
    """It has the rows that differ from the table without it."""
    documented = table_of("Network", "with the egress proxy, from")
    reached: dict[str, set[str]] = {}
    for proxied, _ in DEPLOYMENTS.values():
        for name in {"webhooks", "shop", *NEW} & proxied.networks_of.keys():
            others = {base_name(other) for other in proxied.reachable_from(name)} - {name}
            reached.setdefault(name, set()).update(others)
    assert documented.keys() == reached.keys()
    for name, (uses, also, ways_out) in documented.items():
        assert names_in(uses) & names_in(also) == set(), name
        assert names_in(uses) | names_in(also) == reached[name], name
        assert names_in(ways_out) == DEPLOYMENTS["development"][0].ways_out(name), name
    for proxied, direct in DEPLOYMENTS.values():
        for name in direct.networks_of.keys() - {"webhooks", "webhooks-2", "shop"}:
            assert proxied.reachable_from(name) - NEW == direct.reachable_from(name), name


def test_webhooks_are_given_the_proxy_and_the_resolver() -> None:
    for name in ("webhooks", "webhooks-2"):
        given = environment(name, VARIABLES, DEVELOPMENT, EGRESS)
        assert parse_proxy_url(given["WEBHOOK_PROXY"]) == ProxySettings("egress-proxy", 3128)
        resolver = services(EGRESS)["egress-resolver"]["networks"]["egress"]["ipv4_address"]
        assert services(EGRESS)[name]["dns"] == [resolver]
    subnet = yaml.safe_load(EGRESS.read_text())["networks"]["egress"]["ipam"]["config"][0]["subnet"]
    assert ip_network(interpolate(resolver)).subnet_of(ip_network(interpolate(subnet)))  # type: ignore[arg-type]


def test_only_webhooks_get_the_address_of_a_proxy() -> None:
    """It may contain a password."""
    assert {
        name for name, service in services().items() if "WEBHOOK_PROXY" in service.get("environment", {})
    } == {
        "webhooks",
        "webhooks-2",
    }
    assert environment("webhooks")["WEBHOOK_PROXY"] == ""


def test_overlay_without_its_network_is_refused() -> None:
    """Webhooks would keep their own way out."""
    for name in ("webhooks", "webhooks-2"):
        (label,) = services(EGRESS)[name]["labels"].values()
        assert label.startswith("${WEBHOOK_NETWORK:?")
    files = [DEVELOPMENT.name, EGRESS.name]
    assert {"COMPOSE_FILE": ":".join(files), "WEBHOOK_NETWORK": "egress"} == VARIABLES


@pytest.mark.parametrize("name", sorted(NEW))
def test_proxy_and_resolver_are_read_only_and_unprivileged(name: str) -> None:
    service = services(EGRESS)[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["logging"]["options"]["max-size"]
    assert service["restart"] == "unless-stopped"
    assert "ports" not in service
    assert all(mount.endswith(":ro") for mount in service["volumes"])
    found = re.fullmatch(r"\$\{[A-Z]+_IMAGE:-(.+)\}", service["image"])
    assert found
    assert re.search(r":v?\d", found[1]), "not pinned"


class TestRulesOfTheProxy:
    @pytest.fixture
    def rules(self) -> list[str]:
        lines = (PROJECT / "deploy" / "egress" / "squid.conf").read_text().splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    def test_every_network_that_mizan_refuses_is_refused_by_the_proxy_too(self, rules: list[str]) -> None:
        refused = {
            ip_network(word)
            for line in rules
            if line.startswith("acl not_public dst ")
            for word in line.split()[3:]
        }
        ours = {*outbound_url._NOT_PUBLIC_IPV4, *outbound_url._NOT_PUBLIC_IPV6}
        # A 6to4 address carries an IPv4 address, which Mizan looks at.
        assert refused == ours | {ip_network("2002::/16")}

    def test_access_is_denied_unless_everything_is_right(self, rules: list[str]) -> None:
        assert [line for line in rules if line.startswith("http_access")] == [
            "http_access deny !connect",
            "http_access deny !webhook_ports",
            "http_access deny !by_address",
            "http_access deny not_public",
            "http_access allow all",
        ]
        assert "acl connect method CONNECT" in rules
        assert "acl webhook_ports port 443" in rules

    @pytest.mark.parametrize(
        ("host", "is_allowed"),
        [
            ("93.184.216.34", True),
            ("[2606:2800:220:1::34]", True),
            ("example.com", False),
            ("2606.example.com", False),
            ("localhost", False),
            ("2130706433", False),
            ("127.1", False),
            ("[::1]", False),
            ("[fd00::1]", False),
            ("[200::1]", False),
            ("[64:ff9b::7f00:1]", False),
            ("[::ffff:10.0.0.1]", False),
        ],
    )
    def test_only_addresses_are_asked_for(self, rules: list[str], host: str, is_allowed: bool) -> None:
        patterns = [line.split()[4] for line in rules if line.startswith("acl by_address dstdom_regex -n ")]
        assert len(patterns) == 2
        assert any(re.search(pattern, host) for pattern in patterns) is is_allowed

    def test_it_answers_before_mizan_gives_up(self, rules: list[str]) -> None:
        """Else a merchant that does not answer would look like a proxy that does not answer."""
        (seconds,) = [int(line.split()[1]) for line in rules if line.startswith("forward_timeout ")]
        assert seconds < 10

    def test_files_of_the_overlay_exist(self) -> None:
        for name in NEW:
            for mount in services(EGRESS)[name]["volumes"]:
                assert Path(PROJECT, mount.split(":")[0]).is_dir()
        assert "forward . /etc/resolv.conf" in (PROJECT / "deploy" / "egress" / "Corefile").read_text()

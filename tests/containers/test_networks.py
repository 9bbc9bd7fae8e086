"""Networks by need: who can reach whom, and who can reach the internet. docs/security.md has the complete tables."""

import re

import pytest
import yaml

from tests.containers.compose_files import ENGINES, PROJECT, environment, read_env_file
from tests.containers.reachability import Deployment, base_name, development, production

DEPLOYMENTS = {"development": development(), "production": production()}
CLUSTER = read_env_file(PROJECT / "deploy" / "cluster.env")


@pytest.fixture(params=list(DEPLOYMENTS.values()), ids=list(DEPLOYMENTS))
def deployment(request: pytest.FixtureRequest) -> Deployment:
    found: Deployment = request.param
    return found


def table_of(heading: str, first_column: str) -> dict[str, list[str]]:
    """Return the rows of a table of docs/security.md, by their first cell."""
    section = (
        (PROJECT / "docs" / "security.md").read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    )
    table = section.partition(f"\n| {first_column} |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert rows, f"there is no table of {first_column}"
    return {row[0].strip("`"): row[1:] for row in rows}


def names_in(cell: str) -> set[str]:
    return {name.strip().strip("`") for name in cell.split(",") if name.strip()}


class TestTables:
    def test_table_of_pairs_is_complete(self) -> None:
        """Every service is a row, and every pair is in it exactly if they share a network."""
        reached: dict[str, set[str]] = {}
        for each in DEPLOYMENTS.values():
            for name in each.networks_of:
                others = {base_name(other) for other in each.reachable_from(name)}
                reached.setdefault(base_name(name), set()).update(others - {base_name(name)})
        documented = table_of("Network", "from")
        assert documented.keys() == reached.keys()
        for name, (uses, also, _) in documented.items():
            assert names_in(uses) & names_in(also) == set(), name
            assert (names_in(uses) | names_in(also)) - {name} == reached[name], name

    def test_table_of_pairs_names_the_ways_out(self) -> None:
        for name, (_, _, ways_out) in table_of("Network", "from").items():
            for each in DEPLOYMENTS.values():
                if name in each.networks_of:
                    assert names_in(ways_out) == each.ways_out(name), name

    def test_table_of_networks_is_complete(self) -> None:
        documented = table_of("Network", "network")
        assert documented.keys() == development().networks.keys()
        for name, (_, way_out, members) in documented.items():
            assert way_out == ("yes" if development().has_way_out(name) else "no"), name
            found = {base_name(member) for each in DEPLOYMENTS.values() for member in each.members(name)}
            assert names_in(members) == found, name

    def test_a_second_worker_is_in_the_networks_of_the_first(self, deployment: Deployment) -> None:
        """So the tables need no row for it."""
        for name, networks in deployment.networks_of.items():
            assert networks == deployment.networks_of[base_name(name)], name


class TestNeeds:
    def test_only_these_services_reach_kafka(self, deployment: Deployment) -> None:
        """Not the API, the checkout and the dashboard, which publish through the outbox."""
        clients = {base_name(name) for name in deployment.reachable_from("kafka")}
        services = {"checkout-verifier", "webhooks", "scheduler", "monitor"}
        assert clients == services | {"kafka", "topics", "cli"}

    def test_only_checkout_and_verifier_reach_providers(self, deployment: Deployment) -> None:
        """For test applications the sandbox is the provider. The monitor, Prometheus and `mizan audit` read it."""
        members = {base_name(name) for name in deployment.members("providers")}
        assert members == {"checkout", "checkout-verifier"}
        readers = {"monitor", "prometheus", "cli"}
        assert {base_name(name) for name in deployment.members("sandbox")} == members | readers | {"sandbox"}

    def test_only_the_dashboard_reaches_the_mail_server(self, deployment: Deployment) -> None:
        assert {base_name(name) for name in deployment.members("mail")} == {"dashboard"}

    def test_only_webhooks_reach_merchants(self, deployment: Deployment) -> None:
        members = {base_name(name) for name in deployment.members("merchants")}
        assert members - {"shop"} == {"webhooks"}

    def test_no_service_is_in_the_default_network(self, deployment: Deployment) -> None:
        """Compose puts a service without networks there, and it has a way out."""
        assert not deployment.members("default")

    def test_everything_else_has_no_way_out(self, deployment: Deployment) -> None:
        with_way_out = {base_name(name) for name in deployment.networks_of if deployment.ways_out(name)}
        proxies = {"proxy", "public-proxy"} & deployment.networks_of.keys()
        demo_shop = {"shop"} & deployment.networks_of.keys()
        assert with_way_out == proxies | demo_shop | {
            "checkout",
            "checkout-verifier",
            "dashboard",
            "webhooks",
        }

    @pytest.mark.parametrize("engine", sorted(ENGINES))
    def test_engines_are_in_internal_networks_only(self, deployment: Deployment, engine: str) -> None:
        assert deployment.networks_of[engine]
        assert all(deployment.networks[name].get("internal") for name in deployment.networks_of[engine])

    def test_postgres_and_kafka_share_no_network(self, deployment: Deployment) -> None:
        assert not deployment.reachable_from("postgres") & ENGINES

    def test_proxy_reaches_only_the_services_behind_it(self, deployment: Deployment) -> None:
        (proxy,) = {"proxy", "public-proxy"} & deployment.networks_of.keys()
        behind = {base_name(name) for name in deployment.reachable_from(proxy)}
        assert behind - {"shop"} == {"api", "checkout", "dashboard", "sandbox"}

    def test_every_address_in_the_settings_can_be_reached(self, deployment: Deployment) -> None:
        """What Prometheus scrapes, what the monitor polls, and every http address of a container."""
        for name in deployment.networks_of:
            values = environment(name, {**CLUSTER, "API_PUBLIC_URL": ""}, *deployment.files).items()
            wanted = {
                host
                for key, value in values
                if not key.endswith("_PUBLIC_URL")
                for host in re.findall(r"http://([a-z0-9-]+):[0-9]+", value)
                if host in deployment.networks_of
            }
            # All services get the addresses of the sandbox, but only these use them.
            if base_name(name) not in {"checkout", "checkout-verifier", "sandbox", "monitor"}:
                wanted -= {"sandbox", "checkout", "api"}
            assert wanted - {name} <= deployment.reachable_from(name), name

    def test_prometheus_reaches_all_its_targets(self, deployment: Deployment) -> None:
        for file in ("services", "sandbox", "cluster"):
            for entry in yaml.safe_load((PROJECT / "deploy" / "prometheus" / f"{file}.yml").read_text()):
                for target in entry["targets"]:
                    name = target.partition(":")[0]
                    if name in deployment.networks_of:
                        assert name in deployment.reachable_from("prometheus")

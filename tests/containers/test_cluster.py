"""deploy/cluster.env and the profile `cluster` match: three brokers and two of each worker."""

import pytest
import yaml

from stack.broker import Broker, BrokerPorts
from stack.services import SERVICES
from tests.containers.compose_files import (
    PROJECT,
    environment,
    our_services,
    read_env_file,
    services,
)

CLUSTER = read_env_file(PROJECT / "deploy" / "cluster.env")
SECOND_WORKERS = {
    name for name, service in our_services().items() if service.get("profiles") == ["cluster"]
} - {"cluster-check"}


@pytest.mark.parametrize(("brokers", "variables"), [(1, {}), (3, CLUSTER)], ids=["alone", "cluster"])
def test_kafka_settings_equal_those_of_the_embedded_stack(brokers: int, variables: dict[str, str]) -> None:
    names = ["kafka", "kafka-2", "kafka-3"][:brokers]
    voters = tuple(BrokerPorts(9092, 9093) for _ in names)
    for number, name in enumerate(names, start=1):
        embedded = Broker(number, PROJECT, "id", voters, (), "secret").settings(PROJECT)
        given = environment(name, variables)
        addresses = {"listeners", "advertised.listeners", "controller.quorum.voters", "log.dirs"}
        # Only the embedded broker has to be small.
        compared = {setting for setting in embedded if not setting.endswith("sasl.jaas.config")}
        for setting in compared - addresses - {"log.cleaner.dedupe.buffer.size"}:
            assert given["KAFKA_" + setting.upper().replace(".", "_")] == embedded[setting], setting
        assert given["KAFKA_ADVERTISED_LISTENERS"] == f"CLIENT://{name}:9092"
        quorum = ",".join(f"{node}@{broker}:9093" for node, broker in enumerate(names, start=1))
        assert given["KAFKA_CONTROLLER_QUORUM_VOTERS"] == quorum
    assert environment("webhooks", variables)["KAFKA_BOOTSTRAP_SERVERS"] == ",".join(
        f"{name}:9092" for name in names
    )
    assert environment("webhooks", variables)["KAFKA_REPLICATION_FACTOR"] == str(brokers)


def test_cluster_has_two_equal_workers_of_each_kind() -> None:
    assert {name.removesuffix("-2") for name in SECOND_WORKERS} == {
        service.name for service in SERVICES if service.in_production and service.name != "monitor"
    }
    for name in SECOND_WORKERS:
        first, second = services()[name.removesuffix("-2")], services()[name]
        differing = {key for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
        assert differing <= {"profiles", "networks"}
        assert set(first["networks"]) == set(second["networks"])
        # The proxy reaches both by one name.
        if "front" in second["networks"]:
            assert second["networks"]["front"]["aliases"] == [name.removesuffix("-2")]


def test_monitor_and_prometheus_check_every_service() -> None:
    """Also the second workers of a cluster, each at an address that exists."""
    names = {service.name for service in SERVICES}
    for variables, more in (({}, set[str]()), (CLUSTER, SECOND_WORKERS)):
        targets = environment("monitor", variables)["MONITOR_TARGETS"].split(",")
        addresses = dict(target.split("=", 1) for target in targets)
        assert addresses.keys() == (names | more) - {"monitor"}
        for name, address in addresses.items():
            assert address == f"http://{name}:{services()[name]['environment']['HTTP_PORT']}"
    folder = PROJECT / "deploy" / "prometheus"
    scraped = {
        target
        for file in ("services", "sandbox", "cluster")
        for entry in yaml.safe_load((folder / f"{file}.yml").read_text())
        for target in entry["targets"]
    }
    ports = {name: services()[name]["environment"]["HTTP_PORT"] for name in names | SECOND_WORKERS}
    assert scraped == {f"{name}:{port}" for name, port in ports.items()}

"""The stack of a run of `make chaos`: its processes, ports and proxies."""

import socket
from collections import Counter
from pathlib import Path

import pytest

from chaos.layout import EnginePortNumbers, Layout, split_link
from chaos.proxied_connection import NetworkFault, Rule
from chaos.proxy import Link
from chaos.stack import Proxies
from stack.broker import Broker
from stack.errors import StackError
from stack.ports import find_free_ports
from tests.chaos.test_proxy import EchoServer

LAYOUT = Layout(20_000, EnginePortNumbers(15_001, (15_002, 15_003, 15_004), (15_005, 15_006, 15_007)))


def test_there_are_two_of_each_worker_and_no_port_is_used_twice() -> None:
    copies = Counter(copy.service.name for copy in LAYOUT.copies)
    assert copies == {
        "api": 2,
        "checkout": 2,
        "checkout-verifier": 2,
        "scheduler": 2,
        "webhooks": 2,
        "sandbox": 1,
    }
    ports = [
        *(copy.port for copy in LAYOUT.copies),
        *(link.port for link in LAYOUT.links),
        LAYOUT.receiver_port,
    ]
    assert len(ports) == len(set(ports))


def test_each_way_has_a_link_and_each_link_is_a_target() -> None:
    targets = LAYOUT.targets()
    ways = {"api-1>postgres", "scheduler-2>postgres", "checkout-1>sandbox", "webhooks-2>kafka-3"}
    assert ways | {"webhooks>receivers", "sandbox>checkout", "api", "checkout"} <= set(targets.links)
    for name in ("kafka-1", "kafka-3-controller", "broker-1>kafka-2"):
        assert name in targets.engine_links
    assert {"sandbox>postgres", "api-1>kafka-1", "webhooks-1>sandbox"}.isdisjoint(targets.links)
    assert set(targets.consumers) == {
        f"{name}-{number}" for name in ("webhooks", "checkout-verifier") for number in (1, 2)
    }
    known = {link.name for link in LAYOUT.links}
    for target in (*targets.links, *targets.engine_links):
        assert split_link(target, LAYOUT.links)[0] in known


def test_brokers_listen_elsewhere_than_where_they_are_reached(tmp_path: Path) -> None:
    ports = LAYOUT.broker_ports()
    settings = Broker(2, tmp_path, "cluster", ports, (), "secret").settings(tmp_path)
    assert settings["listeners"] == "CLIENT://127.0.0.1:15003,CONTROLLER://127.0.0.1:15006"
    assert settings["advertised.listeners"] == f"CLIENT://127.0.0.1:{LAYOUT.link_port('kafka-2')}"
    voters = [f"{number}@127.0.0.1:{LAYOUT.link_port(f'kafka-{number}-controller')}" for number in (1, 2, 3)]
    assert settings["controller.quorum.voters"] == ",".join(voters)


def test_a_copy_runs_its_service_with_its_own_port_and_environment() -> None:
    copy = next(copy for copy in LAYOUT.copies if copy.name == "api-2")
    service = LAYOUT.service(copy, {"DATABASE_URL_FILE": "/urls/api-2"})
    assert (service.name, 20_000 + service.port_offset) == ("api-2", copy.port)
    without = ("-u", "KAFKA_CLIENT_GROUP_INSTANCE_ID")
    assert service.command[:4] == ("/usr/bin/env", *without, "DATABASE_URL_FILE=/urls/api-2")
    assert service.command[4:] == copy.service.command
    assert service.stack_keys["api_base_url"] == "http://127.0.0.1:20001/api/v1"


def test_the_proxies_run_in_a_process_that_obeys() -> None:
    (port,) = find_free_ports(1)
    proxies = Proxies((Link("link", port, (EchoServer(1).port,)),))

    def ask() -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"x")
            return connection.recv(10)

    try:
        assert ask() == b"1x"
        proxies.apply("link", Rule(NetworkFault.CUT))
        with pytest.raises(ConnectionRefusedError):
            ask()
        proxies.heal("link")
        assert ask() == b"1x"
        with pytest.raises(StackError, match="unknown"):
            proxies.heal("unknown")
    finally:
        proxies.stop()

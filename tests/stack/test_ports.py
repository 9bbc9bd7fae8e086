"""Ports: the error for a taken port names its listener, and free ports are reused."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stack.errors import StackError
from stack.ports import CANDIDATES, EnginePorts, check_service_ports, find_free_ports, is_free
from stack.services import Service

SERVICES = [Service("api", 1, ("api",)), Service("scheduler", 6, ("scheduler",))]


@pytest.fixture
def listener() -> Iterator[int]:
    """A port on which this process listens. The next port is free."""
    port = next(port for port in find_free_ports(50) if is_free(port + 1))
    with socket.create_server(("127.0.0.1", port)):
        yield port


def test_error_of_a_taken_port_names_its_listener(listener: int) -> None:
    """The error names the port, the service, the program that listens on it, and the remedy."""
    with pytest.raises(StackError) as caught:
        check_service_ports(SERVICES, listener - 6)
    assert f"Port {listener} for scheduler is taken by" in caught.value.problem
    assert f"{psutil.Process().name()} (pid {os.getpid()})" in caught.value.problem
    assert "PORT_BASE=" in caught.value.remedy


def test_free_service_ports_are_accepted(listener: int) -> None:
    """A port next to a taken one is accepted."""
    check_service_ports([Service("api", 1, ("api",))], listener)


def test_one_error_names_all_taken_ports(listener: int) -> None:
    twice = [Service("one", 0, ("one",)), Service("two", 0, ("two",))]
    with pytest.raises(StackError, match=r"for one is taken[^$]*for two is taken"):
        check_service_ports(twice, listener)


def test_free_ports_are_distinct_and_outside_the_range_of_outgoing_connections(listener: int) -> None:
    ports = find_free_ports(20)
    assert len(set(ports)) == 20
    assert all(port in CANDIDATES for port in ports)
    assert not is_free(listener)


def test_engine_ports_are_kept_while_free(tmp_path: Path) -> None:
    """The second start uses the ports of the first."""
    first = EnginePorts(tmp_path, 8000)
    ports = first.postgres(), first.brokers(3)
    assert len({ports[0], *(port for pair in ports[1] for port in (pair.client, pair.controller))}) == 7
    second = EnginePorts(tmp_path, 8000)
    assert (second.postgres(), second.brokers(3)) == ports


def test_taken_engine_port_is_replaced(tmp_path: Path) -> None:
    """A stored port that another program has taken is replaced."""
    before = EnginePorts(tmp_path, 8000).postgres()
    with socket.create_server(("127.0.0.1", before)):
        assert EnginePorts(tmp_path, 8000).postgres() != before


def test_engine_ports_are_never_those_of_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a broker took a free port that a service needed later."""
    monkeypatch.setattr("stack.ports.find_free_ports", lambda count: list(range(20_000, 20_000 + count)))
    assert EnginePorts(tmp_path, 20_000).postgres() == 20_020
    assert EnginePorts(tmp_path, 20_010).postgres() not in range(20_010, 20_030), "also a remembered one"

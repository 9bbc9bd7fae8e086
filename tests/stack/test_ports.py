"""Ports: those that are taken are reported with who has them; free ones are remembered."""

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
    """A real program that listens: this one. Nobody listens on the port after it."""
    port = next(port for port in find_free_ports(50) if is_free(port + 1))
    with socket.create_server(("127.0.0.1", port)):
        yield port


def test_taken_service_port_names_its_holder(listener: int) -> None:
    """Which port, for which service, held by which program, and what to do."""
    with pytest.raises(StackError) as caught:
        check_service_ports(SERVICES, listener - 6)
    assert f"Port {listener} for scheduler is taken by" in caught.value.problem
    assert f"{psutil.Process().name()} (pid {os.getpid()})" in caught.value.problem
    assert "PORT_BASE=" in caught.value.remedy


def test_free_service_ports_pass(listener: int) -> None:
    """Ports beside a taken one are nobody's business."""
    check_service_ports([Service("api", 1, ("api",))], listener)


def test_all_taken_ports_are_told_at_once(listener: int) -> None:
    """Two services on taken ports make one report."""
    twice = [Service("one", 0, ("one",)), Service("two", 0, ("two",))]
    with pytest.raises(StackError, match=r"for one is taken[^$]*for two is taken"):
        check_service_ports(twice, listener)


def test_free_ports_are_different_and_not_for_outgoing_connections(listener: int) -> None:
    """Several free ports at once, none given twice, none from the range clients use."""
    ports = find_free_ports(20)
    assert len(set(ports)) == 20
    assert all(port in CANDIDATES for port in ports)
    assert not is_free(listener)


def test_engine_ports_are_kept_while_free(tmp_path: Path) -> None:
    """The second start finds PostgreSQL and Kafka where the first one put them."""
    first = EnginePorts(tmp_path, 8000)
    ports = first.postgres(), first.brokers(3)
    assert len({ports[0], *(port for pair in ports[1] for port in (pair.client, pair.controller))}) == 7
    second = EnginePorts(tmp_path, 8000)
    assert (second.postgres(), second.brokers(3)) == ports


def test_taken_engine_port_is_replaced(tmp_path: Path) -> None:
    """A remembered port that somebody else has taken meanwhile is given up."""
    before = EnginePorts(tmp_path, 8000).postgres()
    with socket.create_server(("127.0.0.1", before)):
        assert EnginePorts(tmp_path, 8000).postgres() != before


def test_engine_ports_keep_out_of_the_services_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a broker took a port that was free when it started, and meant for a service that starts later."""
    monkeypatch.setattr("stack.ports.find_free_ports", lambda count: list(range(20_000, 20_000 + count)))
    assert EnginePorts(tmp_path, 20_000).postgres() == 20_020
    assert EnginePorts(tmp_path, 20_010).postgres() not in range(20_010, 20_030), "also a remembered one"

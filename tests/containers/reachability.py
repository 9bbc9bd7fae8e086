"""Who can reach whom in containers, computed from the compose files: containers reach each other in a network that both
are in, and the internet from a network that is not internal."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.containers.compose_files import (
    DEVELOPMENT,
    EGRESS,
    PRODUCTION,
    interpolate,
    read_compose_file,
    services,
)

_MASQUERADE = "com.docker.network.bridge.enable_ip_masquerade"


def base_name(name: str) -> str:
    """Return the first of its kind: the second API is `api-2`, the third broker `kafka-3`."""
    return name.rstrip("0123456789").rstrip("-")


@dataclass(frozen=True)
class Deployment:
    """The containers of some compose files, of all profiles, with the variables of an env file."""

    files: tuple[Path, ...]
    variables: Mapping[str, str]

    @cached_property
    def networks_of(self) -> Mapping[str, frozenset[str]]:
        """The networks of each container that runs; none for one without a network."""
        merged: dict[str, dict[str, Any]] = {}
        for file in self.files:
            for name, service in services(file).items():
                merged.setdefault(name, {}).update(service)
        return {
            name: self._networks(service)
            for name, service in merged.items()
            if service.get("profiles") != ["never"]
        }

    @cached_property
    def networks(self) -> Mapping[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for file in self.files:
            found |= {
                name: network or {} for name, network in read_compose_file(file).get("networks", {}).items()
            }
        return found

    def members(self, network: str) -> set[str]:
        return {name for name, networks in self.networks_of.items() if network in networks}

    def reachable_from(self, name: str) -> set[str]:
        """Return the other containers that share a network with it."""
        return {
            other
            for other, networks in self.networks_of.items()
            if other != name and networks & self.networks_of[name]
        }

    def ways_out(self, name: str) -> set[str]:
        """Return its networks from which the internet can be reached."""
        return {network for network in self.networks_of[name] if self.has_way_out(network)}

    def has_way_out(self, network: str) -> bool:
        definition = self.networks[network]
        masquerades = definition.get("driver_opts", {}).get(_MASQUERADE, "true") != "false"
        return masquerades and not definition.get("internal", False)

    def _networks(self, service: Mapping[str, Any]) -> frozenset[str]:
        if service.get("network_mode") == "none":
            return frozenset()
        # Without any, Compose would take the network `default`, which is not internal.
        given: Iterable[str] = service.get("networks", ["default"])
        return frozenset(interpolate(network, self.variables) for network in given)


def development(**variables: str) -> Deployment:
    return Deployment((DEVELOPMENT,), variables)


def with_egress_proxy(*files: Path) -> Deployment:
    return Deployment((*files, EGRESS), {"WEBHOOK_NETWORK": "egress"})


def production(**variables: str) -> Deployment:
    return Deployment((DEVELOPMENT, PRODUCTION), variables)

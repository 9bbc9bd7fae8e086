"""The stack of a run: two of each worker, and a proxy on each way between two processes. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chaos.fault_plan import Targets
from chaos.proxy import Link
from shared.domain.topics import ALL_TOPICS
from stack.broker import BrokerPorts
from stack.services import SERVICES, Service

COPIES = 2
_COPY_OFFSET = 20
"""From the port of one copy of a service to that of the next."""
_LINK_OFFSET = 100
PORTS = 200
"""A stack uses this many ports, from its port base on."""
TWICE = ("api", "checkout", "checkout-verifier", "scheduler", "webhooks")
ONCE = ("sandbox",)
BALANCED = ("api", "checkout")
"""Clients reach them through a load balancer on the port that the service has in other stacks."""
CHARGING = ("checkout", "checkout-verifier")
"""The services that call the sandbox."""
CONSUMING = ("webhooks", "checkout-verifier")
"""The services that are members of consumer groups. The scheduler only produces."""
NOTIFICATIONS_LINK = "sandbox>checkout"
WEBHOOKS_LINK = "webhooks>receivers"
_LOST_FOR_GOOD = ("webhooks.resend", "webhooks.dead", "dead_letters")
"""Topics whose records PostgreSQL does not have: if they are deleted, what was in them is lost, as documented."""
_ENV = ("/usr/bin/env", "-u", "KAFKA_CLIENT_GROUP_INSTANCE_ID")
"""Two copies cannot be the same member of a group, and a restart is to cause a rebalance."""
_BY_NAME = {service.name: service for service in SERVICES}


@dataclass(frozen=True)
class Copy:
    """One process of a service, such as webhooks-2."""

    service: Service
    """As in other stacks."""
    name: str
    port: int


@dataclass(frozen=True)
class EnginePortNumbers:
    """Where the engines listen."""

    postgres: int
    brokers: tuple[int, ...]
    controllers: tuple[int, ...]


class Layout:
    """Names and ports of everything in a run's stack."""

    def __init__(self, port_base: int, engines: EnginePortNumbers) -> None:
        self.port_base = port_base
        self._engines = engines
        self.copies = tuple(self._copies())
        ports = iter(range(port_base + _LINK_OFFSET, port_base + PORTS))
        self.receiver_port = next(ports)
        self.links = tuple(self._links(ports))
        self._link_ports = {link.name: link.port for link in self.links}

    def _copies(self) -> Iterator[Copy]:
        for name in ONCE:
            service = _BY_NAME[name]
            yield Copy(service, name, self.port_base + service.port_offset)
        for name in TWICE:
            service = _BY_NAME[name]
            for number in range(1, COPIES + 1):
                port = self.port_base + service.port_offset + number * _COPY_OFFSET
                yield Copy(service, f"{name}-{number}", port)

    def _links(self, ports: Iterator[int]) -> Iterator[Link]:
        for name in BALANCED:
            yield Link(name, self.port_base + _BY_NAME[name].port_offset, self._ports_of(name))
        yield Link(NOTIFICATIONS_LINK, next(ports), self._ports_of("checkout"))
        yield Link(WEBHOOKS_LINK, next(ports), (self.receiver_port,))
        for copy in self.copies:
            if copy.service.database_role is not None:
                yield Link(f"{copy.name}>postgres", next(ports), (self._engines.postgres,))
            if copy.service.name in CHARGING:
                yield Link(f"{copy.name}>sandbox", next(ports), self._ports_of("sandbox"))
        for number, (broker, controller) in enumerate(
            zip(self._engines.brokers, self._engines.controllers, strict=True), start=1
        ):
            yield Link(f"kafka-{number}", next(ports), (broker,), names_clients=True)
            yield Link(f"kafka-{number}-controller", next(ports), (controller,))

    def _ports_of(self, service: str) -> tuple[int, ...]:
        return tuple(copy.port for copy in self.copies if copy.service.name == service)

    def link_port(self, name: str) -> int:
        return self._link_ports[name]

    def broker_ports(self) -> tuple[BrokerPorts, ...]:
        return tuple(
            BrokerPorts(
                self.link_port(f"kafka-{number}"),
                self.link_port(f"kafka-{number}-controller"),
                client_listener=broker,
                controller_listener=controller,
            )
            for number, (broker, controller) in enumerate(
                zip(self._engines.brokers, self._engines.controllers, strict=True), start=1
            )
        )

    def service(self, copy: Copy, environment: Mapping[str, str]) -> Service:
        """Return the service of a copy, for the launcher. `environment` is its own, besides that of its service."""
        variables = [f"{name}={value}" for name, value in environment.items()]
        return replace(
            copy.service,
            name=copy.name,
            port_offset=copy.port - self.port_base,
            command=(*_ENV, *variables, *copy.service.command),
            # A mapping that can be sent to the process of the launcher.
            stack_keys=copy.service.addresses(self.port_base),
        )

    def halves(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the copies in two halves, each with one of every pair, consumers before producers."""
        names = [copy.name for copy in reversed(self.copies)]
        second = tuple(name for name in names if name.endswith("-2"))
        return {"first copies": tuple(name for name in names if name not in second), "second copies": second}

    def targets(self) -> Targets:
        """Return what a run can break."""
        numbers = range(1, len(self._engines.brokers) + 1)
        brokers = tuple(f"kafka-{number}" for number in numbers)
        clients = tuple(copy.name for copy in self.copies if copy.service.kafka_principal is not None)
        to_brokers = (f"{client}>{broker}" for client in clients for broker in brokers)
        between = (f"broker-{a}>kafka-{b}" for a in numbers for b in numbers if a != b)
        taken_away = [link.name for link in self.links if link.name.startswith("kafka-")]
        links = [link.name for link in self.links if link.name not in taken_away]
        return Targets(
            services=tuple(copy.name for copy in self.copies),
            with_workers=tuple(copy.name for copy in self.copies if copy.service.has_workers),
            consumers=tuple(copy.name for copy in self.copies if copy.service.name in CONSUMING),
            brokers=brokers if len(brokers) > 1 else ("kafka",),
            postgres="postgres",
            links=(*links, *to_brokers),
            engine_links=(*taken_away, *between),
            topics=tuple(topic.name for topic in ALL_TOPICS if topic.name not in _LOST_FOR_GOOD),
            groups=tuple(topic.group for topic in ALL_TOPICS if topic.group is not None),
        )


def split_link(target: str, links: Sequence[Link]) -> tuple[str, str | None]:
    """Return the link of a target, and the client if it is one of several: `webhooks-1>kafka-2` is a client's."""
    if any(link.name == target for link in links):
        return target, None
    client, _, link_name = target.partition(">")
    return link_name, client

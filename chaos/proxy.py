"""TCP proxies on loopback that can break: they stand between the processes of a stack, all in one process.

A link listens on a port and forwards to one target, or to several in turn, as a load balancer does. A fault holds for
all connections of a link or, where clients tell their names as Kafka's do, for those of one client.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from chaos.proxied_connection import HOST, NetworkFault, Pair, Rule


@dataclass(frozen=True)
class Link:
    name: str
    port: int
    targets: tuple[int, ...]
    """Ports. With several, each connection goes to the next one that accepts it."""
    names_clients: bool = False
    """Whether clients tell their names, in Kafka's protocol."""


class _RunningLink:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._server: asyncio.Server | None = None
        self._turn = count()
        self._rules: dict[str | None, Rule] = {}
        self.pairs: set[Pair] = set()

    @property
    def names_clients(self) -> bool:
        return self._link.names_clients

    def rule_of(self, client: str | None) -> Rule | None:
        """Return the rule that holds for a client. A rule for `broker-1` also holds for `broker-1-fetcher-0`."""
        own = (rule for name, rule in self._rules.items() if name and f"{client}-".startswith(f"{name}-"))
        return next(own, self._rules.get(None))

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        if self._server is None:
            self._server = await loop.create_server(
                self._accept, HOST, self._link.port, backlog=512, reuse_address=True
            )

    def stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def apply(self, rule: Rule) -> None:
        self._rules[rule.client] = rule
        if rule.fault is NetworkFault.CUT and rule.client is None:
            self.stop_listening()
        for pair in [pair for pair in self.pairs if self.rule_of(pair.name) is rule]:
            if rule.fault is NetworkFault.RESET:
                pair.close(reset=True)
            else:
                pair.obey()

    async def heal(self, client: str | None) -> None:
        self._rules.pop(client, None)
        for pair in list(self.pairs):
            pair.obey()
        if None not in self._rules:
            await self.listen()

    def _accept(self) -> asyncio.Protocol:
        pair = Pair(self)
        self.pairs.add(pair)
        return pair.client

    def ports_in_turn(self) -> Iterator[int]:
        targets = self._link.targets
        first = next(self._turn)
        return (targets[(first + step) % len(targets)] for step in range(len(targets)))


class ProxyServer:
    """All links, in the running event loop."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = {link.name: _RunningLink(link) for link in links}

    async def start(self) -> None:
        """Listen on all ports. Raises OSError if one is taken."""
        for link in self._links.values():
            await link.listen()

    async def apply(self, name: str, rule: Rule) -> None:
        """Start a fault on a link, in place of the one that holds for the same client. Raises KeyError."""
        await self._links[name].apply(rule)

    async def heal(self, name: str, client: str | None = None) -> None:
        await self._links[name].heal(client)

    def connections(self, name: str) -> int:
        return len(self._links[name].pairs)

    def stop(self) -> None:
        for link in self._links.values():
            link.stop_listening()
            for pair in list(link.pairs):
                pair.close(reset=True)

"""The faults of a run, drawn from its seed: what breaks, when, and for how long. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from random import Random

from chaos.proxied_connection import NetworkFault

_FIRST_FAULT_S = 4.0
_LAST_END_S = 3.0
"""All faults end this long before the load stops."""
_GAPS_S = (3.0, 10.0)
"""From one fault to the next: the shortest and the longest time."""

_MOST_DRAWS = 4
"""How many kinds are tried until one is possible."""


class FaultKind(StrEnum):
    KILL = "kill"
    """kill -9 of a process and its children; of PostgreSQL, the postmaster only."""
    KILL_CHILD = "kill_child"
    """kill -9 of one worker of a service, or of one backend of PostgreSQL."""
    STOP = "stop"
    """SIGSTOP of a process and its children, and SIGCONT later."""
    CUT = "cut"
    DELAY = "delay"
    HANG = "hang"
    HALF = "half"
    RESET = "reset"
    DISK_FULL = "disk_full"
    """No file of a broker or of PostgreSQL can grow."""
    DELETE_TOPIC = "delete_topic"
    RESET_GROUP = "reset_group"
    MOVE_CLOCK = "move_clock"
    ROLLING_RESTART = "rolling_restart"
    REBALANCE_STORM = "rebalance_storm"
    CHANGE_RELEASE = "change_release"
    """Half of the services, one by one, go on with another release. Only in runs with two of them."""


NETWORK_FAULTS = {FaultKind(fault.value): fault for fault in NetworkFault}

_SHARES = {
    FaultKind.KILL: 5,
    FaultKind.KILL_CHILD: 2,
    FaultKind.STOP: 4,
    FaultKind.CUT: 2,
    FaultKind.DELAY: 2,
    FaultKind.HANG: 2,
    FaultKind.HALF: 2,
    FaultKind.RESET: 2,
    FaultKind.DISK_FULL: 1,
    FaultKind.DELETE_TOPIC: 1,
    FaultKind.RESET_GROUP: 1,
    FaultKind.MOVE_CLOCK: 2,
    FaultKind.ROLLING_RESTART: 1,
    FaultKind.REBALANCE_STORM: 1,
}
"""How often each kind occurs, after it has occurred once."""
RANDOM_KINDS = frozenset(_SHARES)


@dataclass(frozen=True)
class Targets:
    """What a run can break, by name."""

    services: tuple[str, ...]
    with_workers: tuple[str, ...]
    """The services whose workers are children of a main process."""
    consumers: tuple[str, ...]
    """The services that are members of consumer groups."""
    brokers: tuple[str, ...]
    postgres: str
    links: tuple[str, ...]
    """Of services; a link that takes a broker or PostgreSQL from all is among `engine_links`."""
    engine_links: tuple[str, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def engines(self) -> tuple[str, ...]:
        return (self.postgres, *self.brokers)


@dataclass(frozen=True)
class Planned:
    number: int
    begins_at: float
    """Seconds after the start of the load."""
    kind: FaultKind
    target: str
    seconds: float
    """How long it lasts; 0 if it ends by itself."""
    amount: int = 0
    """Milliseconds of a delay, seconds of a clock jump, or how many times a consumer is restarted."""

    @property
    def ends_at(self) -> float:
        return self.begins_at + self.seconds

    def describe(self) -> str:
        lasting = f"for {self.seconds:.1f} s" if self.seconds else ""
        amount = {
            FaultKind.DELAY: f"{self.amount} ms",
            FaultKind.MOVE_CLOCK: f"{self.amount} s forward",
            FaultKind.REBALANCE_STORM: f"{self.amount} restarts",
        }.get(self.kind, "")
        return " ".join(part for part in (amount, lasting) if part)


def plan_faults(seed: int, seconds: float, targets: Targets) -> list[Planned]:
    """Return the faults of a run, in the order of their begin. The same arguments give the same plan.

    First each kind occurs once, in random order, then by its share. Faults overlap, but only one at a time takes a
    broker away, and only one at a time PostgreSQL, so that the stack can make progress.
    """
    return _Planner(seed, seconds, targets).plan()


def plan_change_of_release(seconds: float, halves: Sequence[str], number: int) -> list[Planned]:
    """Return the changes to the other release, beginning with this `number`: both halves run side by side for long."""
    step = seconds / (len(halves) + 1)
    return [
        Planned(number + index, round(step * (index + 1), 2), FaultKind.CHANGE_RELEASE, half, 0.0)
        for index, half in enumerate(halves)
    ]


_Reservation = tuple[str, float, float]
"""What is taken away, from when, until when."""
_RECOVERY_S = {"kafka": 12.0, "postgres": 8.0}
"""How long these need until the next fault may take them away."""
_ENDS_BY_ITSELF_S = {
    FaultKind.KILL: 4.0,
    FaultKind.KILL_CHILD: 2.0,
    FaultKind.DELETE_TOPIC: 10.0,
    FaultKind.RESET_GROUP: 15.0,
    FaultKind.MOVE_CLOCK: 1.0,
    FaultKind.ROLLING_RESTART: 60.0,
    FaultKind.REBALANCE_STORM: 15.0,
}
"""About how long faults take whose end is not planned."""


class _Planner:
    def __init__(self, seed: int, seconds: float, targets: Targets) -> None:
        self._random = Random(f"{seed}/faults")
        self._end = seconds - _LAST_END_S
        self._targets = targets
        self._reserved: list[_Reservation] = []

    def plan(self) -> list[Planned]:
        planned: list[Planned] = []
        waiting: list[FaultKind] = []
        kinds = self._kinds()
        at = _FIRST_FAULT_S
        while at < self._end:
            fault = self._first_possible(waiting, kinds, len(planned) + 1, at)
            if fault is not None:
                planned.append(fault)
            at += self._random.uniform(*_GAPS_S)
        return planned

    def _first_possible(
        self, waiting: list[FaultKind], kinds: Iterator[FaultKind], number: int, at: float
    ) -> Planned | None:
        """Draw a fault: of a kind that did not fit before, which are `waiting`, or else of the next kinds."""
        for kind in list(waiting):
            if fault := self._draw(kind, number, at):
                waiting.remove(kind)
                return fault
        for kind in islice(kinds, _MOST_DRAWS):
            if fault := self._draw(kind, number, at):
                return fault
            waiting.append(kind)
        return None

    def _kinds(self) -> Iterator[FaultKind]:
        bag = list(_SHARES)
        while True:
            self._random.shuffle(bag)
            yield from bag
            bag = [kind for kind, share in _SHARES.items() for _ in range(share)]

    def _draw(self, kind: FaultKind, number: int, at: float) -> Planned | None:
        """Return a fault of this kind, or None if none is possible now."""
        targets = list(self._targets_of(kind))
        self._random.shuffle(targets)
        left = self._end - at
        for target in targets:
            seconds = self._seconds(kind, target, left)
            takes = seconds or _ENDS_BY_ITSELF_S.get(kind, 0.0)
            wanted = self._resource(kind, target)
            if takes > left or self._is_reserved(wanted, at, at + takes):
                continue
            self._reserved.append((wanted, at, at + takes + _RECOVERY_S.get(wanted, 1.0)))
            return Planned(number, round(at, 2), kind, target, round(seconds, 1), self._amount(kind))
        return None

    def _targets_of(self, kind: FaultKind) -> Sequence[str]:
        known = self._targets
        # Engines are few, and break as often as services.
        processes = (*known.services, *known.engines * max(1, len(known.services) // 6))
        of_kind: dict[FaultKind, Sequence[str]] = {
            FaultKind.KILL: processes,
            FaultKind.STOP: processes,
            FaultKind.KILL_CHILD: (*known.with_workers, known.postgres),
            FaultKind.DISK_FULL: known.engines,
            FaultKind.DELETE_TOPIC: known.topics,
            FaultKind.RESET_GROUP: known.groups,
            FaultKind.MOVE_CLOCK: ("mizan_now()",),
            FaultKind.ROLLING_RESTART: ("all services",),
            FaultKind.REBALANCE_STORM: known.consumers,
        }
        return of_kind.get(kind, (*known.links, *known.engine_links))

    def _resource(self, kind: FaultKind, target: str) -> str:
        """Return what the fault takes away. Faults that take the same do not overlap."""
        if kind in (FaultKind.DELETE_TOPIC, FaultKind.RESET_GROUP):
            return "kafka"
        if target == self._targets.postgres:
            return "postgres"
        if target in self._targets.brokers or target in self._targets.engine_links:
            return "kafka"
        return target

    def _is_reserved(self, wanted: str, begin: float, end: float) -> bool:
        return any(name == wanted and begin < until and since < end for name, since, until in self._reserved)

    def _seconds(self, kind: FaultKind, target: str, left: float) -> float:
        longest: Callable[[float], float] = lambda most: min(most, max(1.0, left))  # noqa: E731
        if kind is FaultKind.STOP:
            most = 15.0 if target == self._targets.postgres and self._random.random() < 0.8 else 40.0
            return min(1.0 + self._random.expovariate(1 / 10), longest(most))
        if kind is FaultKind.DISK_FULL:
            return min(self._random.uniform(2, 8), longest(8))
        if kind in (FaultKind.RESET, FaultKind.HALF):
            return min(self._random.uniform(1, 6), longest(6))
        if kind in NETWORK_FAULTS:
            return min(self._random.uniform(1, 25), longest(25))
        return 0.0

    def _amount(self, kind: FaultKind) -> int:
        if kind is FaultKind.DELAY:
            return self._random.choice((20, 100, 400, 1500))
        if kind is FaultKind.MOVE_CLOCK:
            return self._random.choice((7, 45, 200, 450, 900))
        if kind is FaultKind.REBALANCE_STORM:
            return self._random.randint(3, 6)
        return 0

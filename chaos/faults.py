"""Makes the planned faults happen, each at its time, and records when each began and ended."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

from chaos.clock import ProductClock
from chaos.fault_plan import NETWORK_FAULTS, FaultKind, Planned
from chaos.history import FaultBegan, FaultEnded, History
from chaos.kafka_faults import KafkaFaults
from chaos.layout import split_link
from chaos.process_faults import ProcessFaults
from chaos.proxied_connection import Rule
from chaos.stack import RunningStack
from chaos.supervision import NotRunningError, Supervision

_MOST_AT_ONCE = 24
_LONGEST_PROBLEM = 300


class FaultInjector:
    """The faults of one run. `stop` ends them all early."""

    def __init__(self, stack: RunningStack, history: History, clock: ProductClock) -> None:
        self._stack = stack
        self._history = history
        self._clock = clock
        self._stopping = Event()
        self._supervision = Supervision(stack.directory)
        ports = {copy.name: copy.port for copy in stack.layout.copies}
        self._processes = ProcessFaults(self._supervision, ports, stack.database_url, self._pause)
        bootstrap = str(stack.facts["kafka_bootstrap_servers"])
        self._kafka = KafkaFaults(stack.options, bootstrap, self._supervision, self._pause)
        self._targets = stack.layout.targets()
        self.begun = self.under_way = self.failed = 0
        self._makers: dict[FaultKind, Callable[[Planned], None]] = {
            FaultKind.KILL: self._processes.kill,
            FaultKind.KILL_CHILD: self._processes.kill_child,
            FaultKind.STOP: self._processes.stop,
            FaultKind.DISK_FULL: self._processes.fill_disk,
            FaultKind.ROLLING_RESTART: lambda _: self._processes.restart_all(self._targets.services),
            FaultKind.REBALANCE_STORM: self._processes.restart_often,
            FaultKind.DELETE_TOPIC: lambda fault: self._kafka.delete_topic(fault.target),
            FaultKind.RESET_GROUP: self._reset_group,
            FaultKind.MOVE_CLOCK: lambda fault: self._clock.move(fault.amount),
            FaultKind.CHANGE_RELEASE: self._change_release,
            **dict.fromkeys(NETWORK_FAULTS, self._break_link),
        }

    def run(self, plan: Sequence[Planned], began_at: float) -> None:
        """Make all faults, and return when the last has ended. `began_at` is on the monotonic clock."""
        with ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="fault") as pool:
            running: list[Future[None]] = []
            for fault in plan:
                self._pause(began_at + fault.begins_at - time.monotonic())
                if self._stopping.is_set():
                    break
                running.append(pool.submit(self._make, fault))
            for each in running:
                each.result()

    def stop(self) -> None:
        """End the faults that are under way, and begin no others."""
        self._stopping.set()

    def heal(self) -> None:
        """Repair everything that an interrupted fault may have left: links, processes, topics."""
        for link in self._stack.layout.links:
            self._stack.proxies.heal(link.name)
        names = (self._targets.postgres, *self._targets.brokers, *self._targets.services)
        self._processes.resume_all(names)

    def revive(self) -> list[str]:
        """Start the processes that supervisord has given up. Return their names."""
        return self._supervision.revive()

    def _make(self, fault: Planned) -> None:
        self.begun += 1
        self.under_way += 1
        self._history.add(
            FaultBegan(
                at=time.time(),
                number=fault.number,
                fault=fault.kind,
                target=fault.target,
                details=fault.describe(),
            )
        )
        problem = None
        try:
            self._makers[fault.kind](fault)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on and the history tells
            problem = f"{type(error).__name__}: {error}"[:_LONGEST_PROBLEM]
            self.failed += 1
        self.under_way -= 1
        self._history.add(FaultEnded(at=time.time(), number=fault.number, problem=problem))

    def _break_link(self, fault: Planned) -> None:
        link, client = split_link(fault.target, self._stack.layout.links)
        rule = Rule(NETWORK_FAULTS[fault.kind], client, fault.amount)
        self._stack.proxies.apply(link, rule)
        try:
            self._pause(fault.seconds)
        finally:
            self._stack.proxies.heal(link, client)

    def _reset_group(self, fault: Planned) -> None:
        service = "checkout-verifier" if fault.target.startswith("checkout") else "webhooks"
        members = [copy.name for copy in self._stack.layout.copies if copy.service.name == service]
        self._kafka.reset_group(fault.target, members)

    def _change_release(self, fault: Planned) -> None:
        """Restart half of the services from the files of the other release."""
        releases = self._stack.releases
        if releases is None:
            raise ValueError("this run has one release only")
        names = self._stack.layout.halves()[fault.target]
        for name in names:
            releases.change_over(name)
        self._processes.restart_all(names)
        expected = str(releases.project(releases.first.other))
        others = [name for name in names if self._supervision.tree(name)[0].cwd() != expected]
        if others:
            raise NotRunningError(f"{', '.join(others)} did not change over")

    def _pause(self, seconds: float) -> None:
        self._stopping.wait(max(0.0, seconds))

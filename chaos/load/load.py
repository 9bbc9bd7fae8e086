"""Starts and stops the load: one thread with an event loop, in which all clients and receivers run."""

import asyncio
import resource
from collections import deque
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Thread
from time import clock_gettime, monotonic, pthread_getcpuclockid
from typing import Any, TypeVar

from chaos.history import History, IntentSeen
from chaos.load.bank import Bank
from chaos.load.merchants import Merchants
from chaos.load.operators import Operators
from chaos.load.orders import Orders, TaskSet, cancel
from chaos.load.receiver_behaviour import behaviour_at
from chaos.load.receivers import Receipt, Receivers
from chaos.load.recorder import LoadCounters, Recorder
from chaos.load.transactions import LoadError, Transactions, read_secret_box
from shared.platform.settings import SandboxSettings

_T = TypeVar("_T")

APPLICATIONS = 12
"""The receiver of the last one is dead."""
_MAX_RETRIEVALS = 200
"""At once, beside those of customers who return."""
_ORDERS_PER_RETRIEVAL = 4
_RECENT_RECEIPTS = 500
_SECONDS_BETWEEN_ACTIONS = 5.0
_RESENDS_PER_S = 3.0
_MAX_RESENDS = 50
"""At once."""
_MOST_BEHIND_S = 1.0
_FINISH_S = 15.0
"""So long running orders may go on. What is given up then is recorded as such."""
_RESUME_S = 40.0
_NOTIFY_S = 15.0
_STOP_S = 60.0
_OPEN_FILES = 8192
"""Hundreds of orders and webhooks at once have a connection or two each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAddresses:
    api_url: str
    """Ends in /api/v1."""
    checkout_url: str
    sandbox: SandboxSettings
    database_url: str = field(repr=False)
    """With the role of the command line, or the owner's."""
    environment: Mapping[str, str] = field(repr=False)
    """Of `mizan` commands: it has the keys of webhook secrets."""
    receiver_port: int = 0
    """Where the receivers listen; 0: a free port."""
    webhook_url: str | None = None
    """What webhook URLs begin with, if there is something between the webhook service and the receivers."""


class Load:
    """Merchants, customers, receivers and operators. Its methods are called from the thread of the runner."""

    def __init__(self, addresses: LoadAddresses, history: History, seed: int, rate: float = 10.0) -> None:
        """`rate` is how many orders are started a second, on average."""
        self._receiver_port = addresses.receiver_port
        self._seed = seed
        self._rate = rate
        self._recorder = Recorder(history)
        self._merchants = Merchants(addresses.api_url, self._recorder)
        self._bank = Bank(addresses.sandbox, self._recorder, Random(f"{seed}/bank"))
        self._receivers = Receivers(
            partial(behaviour_at, seed),
            self._recorder,
            self._take_receipt,
            Random(f"{seed}/receivers"),
            addresses.webhook_url,
        )
        self._operators = Operators(
            Transactions(addresses.database_url),
            read_secret_box(addresses.environment),
            self._receivers,
            self._recorder,
            Random(f"{seed}/operators"),
        )
        self._orders = Orders(seed, addresses.checkout_url, self._merchants, self._bank, self._recorder)
        self._actions = TaskSet(self._recorder)
        self._resends = TaskSet(self._recorder)
        self._retrievals = TaskSet(self._recorder)
        self._sources: list[asyncio.Task[None]] = []
        self._applications: list[str] = []
        self._recent: deque[Receipt] = deque(maxlen=_RECENT_RECEIPTS)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="load", daemon=True)

    def start(self) -> None:
        """Create the applications and start everything. Raises LoadError if an application cannot be created."""
        _raise_file_limit()
        self._thread.start()
        self._call(self._start())

    def stop(self) -> None:
        """Start nothing new, let receivers recover, finish or give up what runs, and resume all webhooks.

        Call it when the faults are over. Takes up to 60 s. Raises LoadError if webhooks could not be resumed.
        Receivers go on, and retrieve the intents of the webhooks that they receive.
        """
        self._call(self._stop())

    def close(self) -> None:
        """End the receivers and the thread. Call it when no webhook is expected any more."""
        if self._thread.is_alive():
            self._call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def counters(self) -> LoadCounters:
        """Return what was done so far. The processor time is 0 unless the load is running."""
        ident = self._thread.ident if self._thread.is_alive() else None
        cpu_s = 0.0 if ident is None else clock_gettime(pthread_getcpuclockid(ident))
        return self._recorder.counters(cpu_s)

    def acknowledged_intents(self) -> list[tuple[str, str]]:
        """Return the application and uuid of each intent that a create was answered with."""
        return self._merchants.acknowledged_intents()

    def retrieve(self, application: str, uuid: str, *, after_settling: bool = True) -> IntentSeen | None:
        """Retrieve an intent and record the answer. Return it, or None if there was none."""
        return self._call(self._merchants.retrieve(application, uuid, after_settling=after_settling))

    def retrieve_all(self, *, after_settling: bool = True, at_once: int = 8) -> None:
        """Retrieve all acknowledged intents, some at once, and record the answers."""
        self._call(self._retrieve_all(after_settling, at_once))

    def _call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        future: Future[_T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result()

    async def _start(self) -> None:
        await self._receivers.start(self._receiver_port)
        for number in range(APPLICATIONS):
            receiver = self._receivers.add(lives=number < APPLICATIONS - 1)
            credentials = await self._operators.register(f"Chaos {number}", receiver)
            self._merchants.add(credentials)
            self._applications.append(credentials.application)
        self._sources = [
            asyncio.create_task(self._start_orders()),
            asyncio.create_task(self._start_actions()),
            asyncio.create_task(self._start_resends()),
            asyncio.create_task(self._start_retrievals()),
        ]

    async def _start_orders(self) -> None:
        random, number, due = Random(f"{self._seed}/arrivals"), 0, monotonic()
        while True:
            due = max(due + random.expovariate(self._rate), monotonic() - _MOST_BEHIND_S)
            await asyncio.sleep(due - monotonic())
            number += 1
            self._orders.start(number, self._applications)

    async def _start_actions(self) -> None:
        random = Random(f"{self._seed}/actions")
        while True:
            await asyncio.sleep(random.expovariate(1 / _SECONDS_BETWEEN_ACTIONS))
            if len(self._actions) < APPLICATIONS:
                self._actions.start(self._operators.act())

    async def _start_resends(self) -> None:
        """Resend a webhook that was received not long ago. Often: what Kafka has of a resend is nowhere else."""
        random = Random(f"{self._seed}/resends")
        while True:
            await asyncio.sleep(random.expovariate(_RESENDS_PER_S))
            recent = random.choice(self._recent) if self._recent else None
            if recent is not None and recent.delivery is not None and len(self._resends) < _MAX_RESENDS:
                self._resends.start(self._operators.resend(recent.application, recent.delivery))

    async def _start_retrievals(self) -> None:
        """Retrieve an intent now and then, one for every few orders, as a merchant looks at open orders."""
        random = Random(f"{self._seed}/retrievals")
        while True:
            await asyncio.sleep(random.expovariate(self._rate / _ORDERS_PER_RETRIEVAL))
            known = self._merchants.recent_intent(random)
            if known is not None:
                self._retrieve_soon(*known)

    def _retrieve_soon(self, application: str, uuid: str) -> None:
        if len(self._retrievals) < _MAX_RETRIEVALS:
            self._retrievals.start(self._merchants.retrieve(application, uuid))

    def _take_receipt(self, receipt: Receipt) -> None:
        """Retrieve the intent of a webhook, as receivers must, after the answer is on its way."""
        if receipt.uuid is None or receipt.application not in self._applications:
            return
        self._recent.append(receipt)
        self._orders.hear(receipt)
        self._retrieve_soon(receipt.application, receipt.uuid)

    async def _stop(self) -> None:
        began = monotonic()
        await cancel(self._sources)
        self._receivers.recover()
        resumed = asyncio.create_task(self._operators.resume_all(until=began + _RESUME_S))
        await self._orders.finish(_FINISH_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._bank.notify_again(), _NOTIFY_S)
        try:
            await asyncio.wait_for(resumed, _STOP_S - (monotonic() - began))
        except TimeoutError:
            raise LoadError("webhooks could not be resumed in time") from None

    async def _close(self) -> None:
        for tasks in (self._actions, self._resends, self._retrievals):
            await tasks.finish(timeout_s=0)
        await cancel(self._sources)
        await self._orders.finish(timeout_s=0)
        self._receivers.close()
        self._merchants.close()
        self._bank.close()
        await asyncio.sleep(0)  # lets transports close

    async def _retrieve_all(self, after_settling: bool, at_once: int) -> None:
        waiting = deque(self.acknowledged_intents())

        async def work() -> None:
            while waiting:
                await self._merchants.retrieve(*waiting.popleft(), after_settling=after_settling)

        await asyncio.gather(*(work() for _ in range(at_once)))


def _raise_file_limit() -> None:
    """Let this process open many files, if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

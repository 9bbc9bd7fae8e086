"""Orders from their creation to what comes after the payment: each is one task of the load."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from random import Random
from typing import Any

from chaos.load.bank import Bank
from chaos.load.checkout_pages import PageKind
from chaos.load.customers import Customer
from chaos.load.http_client import HttpAddress
from chaos.load.merchants import Merchants
from chaos.load.plans import CreateStyle, LateSettlement, OrderPlan, plan_order
from chaos.load.receivers import Receipt
from chaos.load.recorder import Recorder

_log = logging.getLogger(__name__)

MAX_ORDERS = 500
"""More are not started while so many run."""
_MAX_AWAITED = 200
"""Orders that wait until they are canceled, to be settled afterwards."""
_LOOK_S = 20.0
_CANCELED, _SUCCEEDED = "canceled", "succeeded"


class TaskSet:
    """Tasks that run beside each other. An error in one is logged and counted, and ends no other."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, timeout_s: float) -> None:
        """Wait until all have ended. Those that have not by then are cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        await cancel(self._tasks)

    async def _run(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception:  # noqa: BLE001  the load must not end because of one order
            self._recorder.count("unexpected")
            _log.exception("a part of the load failed")


async def cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


class Orders:
    def __init__(
        self, seed: int, checkout_url: str, merchants: Merchants, bank: Bank, recorder: Recorder
    ) -> None:
        self._seed = seed
        self._checkout = HttpAddress.parse(checkout_url)
        self._merchants = merchants
        self._bank = bank
        self._recorder = recorder
        self._tasks = TaskSet(recorder)
        self._awaited: dict[str, asyncio.Future[bool]] = {}

    def start(self, number: int, applications: list[str]) -> None:
        """Start an order, unless too many are running."""
        if len(self._tasks) >= MAX_ORDERS:
            self._recorder.count("skipped")
            return
        self._recorder.count("orders")
        plan = plan_order(self._seed, number, len(applications))
        self._tasks.start(self._run(applications[plan.application], plan))

    def hear(self, receipt: Receipt) -> None:
        """Go on with an order that waits until it is canceled, if this is the webhook about it."""
        awaited = self._awaited.get(receipt.uuid or "")
        if awaited is not None and receipt.event == "payment_intent.canceled" and not awaited.done():
            awaited.set_result(True)

    async def finish(self, timeout_s: float) -> None:
        """Let running orders end. Those that wait to be canceled end at once, the others are given up in time."""
        for awaited in self._awaited.values():
            if not awaited.done():
                awaited.set_result(False)
        await self._tasks.finish(timeout_s)

    async def _run(self, application: str, plan: OrderPlan) -> None:
        random = Random(f"{self._seed}/customer/{plan.number}")
        intent = await self._merchants.place_order(application, plan, random)
        if intent is None:
            return
        steps = [self._visit(application, intent.uuid, plan, random)]
        if plan.create_style is CreateStyle.REPEATED:
            steps.append(self._merchants.repeat_order(application, plan, random))
        await asyncio.gather(*steps)

    async def _visit(self, application: str, uuid: str, plan: OrderPlan, random: Random) -> None:
        if plan.visit.payments:
            customer = Customer(self._checkout, uuid, self._recorder, random)
            if await customer.visit(plan.visit) is PageKind.PAID:
                self._recorder.count("payments")
            await self._merchants.retrieve(application, uuid)  # the customer has returned to the shop
        if plan.visit.late is LateSettlement.AFTER_CANCELED:
            if not await self._wait_until_canceled(application, uuid):
                return
        elif plan.visit.late is not None:
            await asyncio.sleep(random.uniform(0.5, 10))
        if plan.visit.late is not None:
            await self._bank.settle_late(uuid)

    async def _wait_until_canceled(self, application: str, uuid: str) -> bool:
        """Wait for the webhook, and look now and then. Return False if the load stops or the intent is paid."""
        if len(self._awaited) >= _MAX_AWAITED:
            return False
        awaited = self._awaited.setdefault(uuid, asyncio.Future())
        try:
            while True:
                done, _ = await asyncio.wait([awaited], timeout=_LOOK_S)
                if done:
                    return awaited.result()
                seen = await self._merchants.retrieve(application, uuid, tries=1)
                if seen is not None and seen.status in (_CANCELED, _SUCCEEDED):
                    return seen.status == _CANCELED
        finally:
            del self._awaited[uuid]

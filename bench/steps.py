"""Where the processor time of one payment and of one webhook goes: each program's share, in µs, on two busy cores."""

from collections.abc import Callable, Iterable
from itertools import count

import psutil
import psycopg
import requests

from bench.checkout import CARD, checkout_service, csrf_token
from bench.due_intents import fill_due
from bench.figures import Figure
from bench.merchant import Installation
from bench.receiver import receiver
from bench.resources import cpu_seconds
from bench.webhook_installation import webhook_installation
from bench.world import World

PAYMENTS = 300
WEBHOOKS = 20_000
WARM_UP = 500
TIMEOUT_S = 60.0

_SESSIONS = """
select application_name, pid from pg_stat_activity
where application_name like 'mizan-%' and datname = current_database()
"""

Cpu = dict[str, float]


def measure(world: World) -> Iterable[Figure]:
    installation = Installation(world, 3 * PAYMENTS)
    with (
        psycopg.connect(installation.database.url, autocommit=True) as connection,
        checkout_service(world, installation) as (checkout, sandbox),
        installation.serving() as api,
    ):
        caller = installation.caller(api)
        caller.create()
        programs = {"api": api.pid}
        yield from _steps("create", connection, programs, lambda: caller.create(warm_up=False).answers)
        yield from _steps("retrieve", connection, programs, lambda: caller.retrieve(warm_up=False).answers)
        browsers = _Browsers(checkout.port, installation.uuids)
        programs = {"checkout": checkout.pid, "sandbox": sandbox.pid}
        browsers.pay(20)
        yield from _steps("page", connection, programs, lambda: browsers.open(PAYMENTS))
        yield from _steps("payment", connection, programs, lambda: browsers.pay(PAYMENTS))
    yield from _webhook(world)


def _webhook(world: World) -> Iterable[Figure]:
    with receiver() as endpoint, webhook_installation(world) as installation:
        application = installation.application(endpoint)
        with installation.scheduler() as scheduler, installation.webhooks() as webhooks:

            def deliver(number: int, prefix: str) -> int:
                fill_due(installation.connection, prefix, count=number, applications=[application])
                endpoint.wait_for(number, TIMEOUT_S)
                endpoint.take()
                installation.wait_recorded()
                return number

            deliver(WARM_UP, "warm-up-")
            programs = {
                "scheduler": scheduler.pid,
                "webhooks": webhooks.pid,
                "kafka": world.engine_pids()["kafka"],
            }
            yield from _steps(
                "webhook", installation.connection, programs, lambda: deliver(WEBHOOKS, "measured-")
            )


def _steps(
    name: str, connection: psycopg.Connection, programs: dict[str, int], run: Callable[[], int]
) -> Iterable[Figure]:
    """Yield the processor time of each program and of its sessions in PostgreSQL, for one of what `run` counts."""
    before = _cpu(connection, programs)
    times = run()
    after = _cpu(connection, programs)
    for program, cpu_s in after.items():
        us = 1e6 * (cpu_s - before.get(program, 0.0)) / times
        if us >= 1:  # programs that have no part in it use a little, too
            yield Figure(f"{name}_{program}_us", round(us), f"processor time of a {name}: {program}")


def _cpu(connection: psycopg.Connection, programs: dict[str, int]) -> Cpu:
    cpu = cpu_seconds(programs)
    for name, pid in connection.execute(_SESSIONS).fetchall():
        times = psutil.Process(pid).cpu_times()
        session = f"postgres_for_{name.removeprefix('mizan-')}"
        cpu[session] = cpu.get(session, 0.0) + times.user + times.system
    return cpu


class _Browsers:
    """Customers, one after the other. Their own processor time does not count."""

    def __init__(self, port: int, uuids: list[str]) -> None:
        self._base = f"http://127.0.0.1:{port}/pay/"
        self._uuids = uuids
        self._next = count()

    def open(self, number: int) -> int:
        with requests.Session() as browser:
            for _ in range(number):
                browser.get(self._base + self._uuids[next(self._next)], timeout=60).raise_for_status()
        return number

    def pay(self, number: int) -> int:
        """Open the page, submit a card, and see the receipt."""
        for _ in range(number):
            with requests.Session() as browser:
                url = self._base + self._uuids[next(self._next)]
                token = csrf_token(browser.get(url, timeout=60).text)
                browser.post(url, data={**CARD, "csrf_token": token}, timeout=60).raise_for_status()
        return number

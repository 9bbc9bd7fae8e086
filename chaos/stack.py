"""Starts the stack of a run: the proxies in a process of their own, then the launcher of `make run` in another."""

import asyncio
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIG_IGN, SIGINT, SIGTERM, signal
from threading import Lock, Thread
from typing import Any
from urllib.parse import quote

from chaos.layout import CHARGING, NOTIFICATIONS_LINK, PORTS, Copy, EnginePortNumbers, Layout
from chaos.proxied_connection import HOST, Rule
from chaos.proxy import Link, ProxyServer
from chaos.releases import Releases
from shared.platform.private_files import write_private_file
from shared.platform.settings import SandboxSettings
from stack.database_roles import ensure_role_passwords
from stack.errors import StackError
from stack.keys import service_keys
from stack.launcher import run
from stack.options import Options
from stack.ports import find_free_ports
from stack.postgres_data import DATABASE
from stack.processes import last_lines
from stack.services import JOBS, Service
from stack.startup_phases import no_demo

START_SECONDS = 240
STOP_SECONDS = 150
RETRY_DELAYS = (2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0)
_SETTINGS = {
    "WEBHOOK_RETRY_DELAYS": ",".join(f"{seconds:g}" for seconds in RETRY_DELAYS),
    "PROVIDER_TIMEOUT": "3",
    "SANDBOX_SILENCE": "5",
    "API_RATE_LIMIT": "0",
    "CHECKOUT_CODES_PER_PHONE": "10000",
    "CHECKOUT_FAILURES_PER_ADDRESS": "1000000",
    # There are two of each service: two workers in each would only take memory.
    "API_WORKERS": "1",
    "CHECKOUT_WORKERS": "1",
    "DASHBOARD_WORKERS": "1",
    "MIZAN_LOG_FORMAT": "json",
}


class Proxies:
    """The links in a process of their own. It ends with this process."""

    def __init__(self, links: tuple[Link, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self._control, theirs = context.Pipe()
        self._process = context.Process(target=_serve_links, args=(links, theirs), daemon=True)
        self._lock = Lock()
        self._process.start()
        theirs.close()
        try:
            self._receive()
        except BaseException:
            self.stop()
            raise

    def apply(self, link: str, rule: Rule) -> None:
        self._call("apply", link, rule)

    def heal(self, link: str, client: str | None = None) -> None:
        self._call("heal", link, client)

    def stop(self) -> None:
        self._control.close()
        self._process.join(10)
        self._process.kill()

    def _call(self, *message: object) -> None:
        with self._lock:
            self._control.send(message)
            self._receive()

    def _receive(self) -> None:
        problem = self._control.recv()
        if problem is not None:
            raise StackError(f"The proxies failed: {problem}.", "Are other stacks using these ports?")


def _serve_links(links: tuple[Link, ...], control: Connection) -> None:
    signal(SIGINT, SIG_IGN)
    asyncio.run(_serve(links, control))


async def _serve(links: tuple[Link, ...], control: Connection) -> None:
    """Serve until the other end of `control` is closed. Answer each call with None, or with the problem."""
    proxies = ProxyServer(links)
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(control.fileno(), readable.set)
    try:
        try:
            await proxies.start()
        except OSError as error:
            control.send(str(error))
            return
        control.send(None)
        while True:
            await readable.wait()
            readable.clear()
            while control.poll():
                method, *arguments = control.recv()
                try:
                    await getattr(proxies, method)(*arguments)
                    control.send(None)
                except (KeyError, OSError) as error:
                    control.send(repr(error))
    except EOFError:
        proxies.stop()
    finally:
        loop.remove_reader(control.fileno())


class RunningStack:
    """A stack that is ready, and the proxies in it."""

    def __init__(self, options: Options, layout: Layout, proxies: Proxies, releases: Releases | None) -> None:
        self.options = options
        self.layout = layout
        self.proxies = proxies
        self.releases = releases
        self.file = options.directory / "stack.json"
        self.facts: Mapping[str, Any] = json.loads(self.file.read_text())

    @property
    def directory(self) -> Path:
        return self.options.directory

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def database_url(self) -> str:
        """The owner's address, past the proxies."""
        return str(self.facts["database_url"])

    @property
    def sandbox(self) -> SandboxSettings:
        """Its address past the proxies, and its secret."""
        secret = Path(self.facts["sandbox_secret_file"]).read_text().strip()
        return SandboxSettings(str(self.facts["sandbox_url"]), secret)


@contextmanager
def running_stack(options: Options, releases: Releases | None) -> Iterator[RunningStack]:
    """Start a stack in `options.directory`, and stop it afterwards. Raises StackError if it does not start.

    With `releases`, its services run from the first of them.
    """
    options.directory.mkdir(parents=True, exist_ok=True)
    options = replace(options, inherited={**options.inherited, **_SETTINGS})
    engines = _engine_ports(options)
    layout = Layout(options.port_base, engines)
    options = replace(options, broker_ports=layout.broker_ports())
    services = [layout.service(copy, _environment(copy, layout, options)) for copy in layout.copies]
    if releases:
        services = [
            replace(service, command=releases.command(service.name, service.command)) for service in services
        ]
    proxies = Proxies(layout.links)
    try:
        with _launched(options, services):
            yield RunningStack(options, layout, proxies, releases)
    finally:
        proxies.stop()


def _engine_ports(options: Options) -> EnginePortNumbers:
    """Choose where the engines listen: not where a service or a proxy will."""
    own = range(options.port_base, options.port_base + PORTS)
    postgres, *kafka = [port for port in find_free_ports(PORTS + 20) if port not in own][
        : 1 + 2 * options.brokers
    ]
    # The launcher takes the port of PostgreSQL from this file.
    (options.directory / "ports.json").write_text(json.dumps({"postgres": postgres}) + "\n")
    return EnginePortNumbers(postgres, tuple(kafka[: options.brokers]), tuple(kafka[options.brokers :]))


def _environment(copy: Copy, layout: Layout, options: Options) -> dict[str, str]:
    """Return what a copy gets that its service has not: its own ways through the proxies, and the keys of both."""
    environment = service_keys(copy.service, options)
    if copy.service.database_role is not None:
        role = copy.service.database_role
        password = ensure_role_passwords(options.directory / "role_passwords")[role]
        port = layout.link_port(f"{copy.name}>postgres")
        path = options.directory / "database_urls" / copy.name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private_file(path, f"postgresql://{role}:{quote(password, safe='')}@{HOST}:{port}/{DATABASE}\n")
        environment["DATABASE_URL_FILE"] = str(path)
    if copy.service.name in CHARGING:
        environment["SANDBOX_URL"] = f"http://{HOST}:{layout.link_port(f'{copy.name}>sandbox')}"
        environment["SANDBOX_NOTIFY_URL"] = f"http://{HOST}:{layout.link_port(NOTIFICATIONS_LINK)}"
    if copy.service.kafka_principal is not None:
        environment["KAFKA_CLIENT_CLIENT_ID"] = copy.name
    return environment


@contextmanager
def _launched(options: Options, services: list[Service]) -> Iterator[None]:
    stack_file, log = options.directory / "stack.json", options.directory / "launcher.log"
    stack_file.unlink(missing_ok=True)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_launch, args=(options, services, log, os.getpid()))
    process.start()
    try:
        deadline = time.monotonic() + START_SECONDS
        while not stack_file.exists():
            if not process.is_alive() or time.monotonic() > deadline:
                raise StackError(
                    f"The stack did not start. The end of its output:\n{last_lines(log)}", f"See {log}."
                )
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.join(STOP_SECONDS)
        process.kill()


def _launch(options: Options, services: list[Service], log: Path, parent: int) -> None:
    # Ctrl-C in a terminal is for the run only, which stops us in the end.
    os.setsid()
    with log.open("ab") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    Thread(target=_stop_with, args=(parent,), daemon=True).start()
    sys.exit(run(options, services, JOBS, no_demo))


def _stop_with(parent: int) -> None:
    """Stop this process when the one that started it is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), SIGTERM)

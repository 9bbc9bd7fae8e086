"""A whole stack in its own process, with stand-in or real services, for tests to inspect and to kill."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.platform.database.roles import ROLE_NAMES
from stack.orphans import find_orphans, stop_orphans
from stack.ports import find_free_ports, is_free
from tests.database_roles import password_of
from tests.engines import TestEngines
from tests.logs import attach_log
from tests.waiting import eventually

PROJECT = Path(__file__).parent.parent.parent


def free_port_base() -> int:
    """Return a base of ports that are all free, for the services of one stack."""
    return next(base for base in find_free_ports(50) if all(is_free(base + offset) for offset in range(10)))


class RunningStack:
    """`python -m stack` in `directory`, with stand-ins for the services unless another module is named."""

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        port_base: int = 0,
        module: str = "tests.stack.stand_in_stack",
        **environment: str,
    ) -> None:
        self.directory = directory
        self.port_base = port_base or free_port_base()
        inherited = {
            name: value
            for name, value in os.environ.items()  # noqa: TID251 - the child inherits ours
            if name not in {"DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS", "KAFKA_PASSWORDS_DIR", "BROKERS"}
        }
        given = {"STACK_DIR": str(directory), "PORT_BASE": str(self.port_base), **environment}
        directory.parent.mkdir(parents=True, exist_ok=True)
        self._output = directory.with_name(f"{directory.name}-{os.urandom(4).hex()}.out")
        attach_log(self._output)
        attach_log(directory / "logs")
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=PROJECT,
                env=inherited | given,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def file(self) -> Path:
        return self.directory / "stack.json"

    def wait_ready(self, within: float = 90) -> dict[str, Any]:
        eventually(lambda: self.file.exists() or self._process.poll() is not None, within=within)
        assert self._process.poll() is None, self.output
        return self.read()

    def read(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.file.read_text())
        return content

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait_exit(self) -> int:
        return self._process.wait(120)

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.wait_exit()

    def mizan(self, *arguments: str) -> dict[str, Any]:
        """Run `bin/mizan` and return its JSON output."""
        environment = {**os.environ, "STACK_DIR": str(self.directory)}  # noqa: TID251  the child inherits ours
        done = subprocess.run(
            [PROJECT / "bin" / "mizan", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def orphans(self) -> list[str]:
        return [" ".join(process.cmdline()) for process in find_orphans(self.directory).all()]

    def end(self) -> None:
        """Stop everything at the end of a test, whatever happened in it."""
        if self._process.poll() is None:
            self.stop()
        stop_orphans(self.directory, print)


@contextmanager
def whole_stack(
    directory: Path, engines: TestEngines, database_url: str, topic_prefix: str, **environment: str
) -> Iterator[RunningStack]:
    """Run the real services on the engines of the tests, as `make run` does. Stop them afterwards.

    Each has its own role in PostgreSQL and its own principal in Kafka.
    """
    passwords = directory.with_name(f"{directory.name}-role-passwords.json")
    passwords.parent.mkdir(parents=True, exist_ok=True)
    passwords.write_text(json.dumps({name: password_of(name) for name in ROLE_NAMES}))
    running = RunningStack(
        directory,
        module="stack",
        port_base=0,
        DATABASE_URL=database_url,
        DATABASE_ROLE_PASSWORDS_FILE=str(passwords),
        KAFKA_BOOTSTRAP_SERVERS=engines.kafka_bootstrap_servers,
        KAFKA_PASSWORDS_DIR=str(engines.kafka_logins.directory) if engines.kafka_logins else "",
        KAFKA_TOPIC_PREFIX=topic_prefix,
        **environment,
    )
    try:
        running.wait_ready(within=300)
        yield running
    finally:
        running.end()

"""The state directory, STACK_DIR: its lock, stack.json, and `python -m stack clean`."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.platform.private_files import write_private_file
from stack.errors import StackError
from stack.options import Options
from stack.orphans import stop_orphans


@contextmanager
def lock_directory(directory: Path, own_pid: int) -> Iterator[None]:
    """Hold the lock that allows one stack per directory. It ends with the process, even if that is killed.

    Raises StackError if the directory cannot be used, or another stack runs in it.
    """
    try:
        (directory / "logs").mkdir(parents=True, exist_ok=True)
        file = (directory / "lock").open("a+")
    except OSError as error:
        raise StackError(
            f"{directory} cannot be used: {error.strerror} ({error.filename}).",
            "Make it a writable directory, or name another one with STACK_DIR=/some/directory.",
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise StackError(
                f"A stack already runs in {directory} (pid {file.read().strip() or 'unknown'}).",
                "Stop it with Ctrl-C in its terminal, or start a second one beside it with another "
                "directory and other ports: make run STACK_DIR=.run2 PORT_BASE=9000",
            ) from None
        file.truncate(0)
        file.write(f"{own_pid}\n")
        file.flush()
        yield


class StackFile:
    """stack.json, which exists while the stack is ready. It contains passwords, so only its owner may read it."""

    def __init__(self, options: Options) -> None:
        self.path = options.directory / "stack.json"
        self._replication = (
            {} if options.kafka_bootstrap_servers else {"kafka_replication_factor": options.brokers}
        )

    def write(self, facts: Mapping[str, Any], pids: Mapping[str, int], demo: Mapping[str, str]) -> None:
        content: dict[str, Any] = {**facts, **self._replication, "pids": dict(pids), "demo": dict(demo)}
        write_private_file(self.path, json.dumps(content, indent=2) + "\n")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


STACK_FILES = (
    "bench",
    "bench.json",
    "database_urls",
    "demo.json",
    "demo.json.new",
    "kafka",
    "keys",
    "logs",
    "metrics",
    "ports.json",
    "postgres",
    "role_passwords",
    "role_passwords.new",
    "rpc",
    "sandbox.sqlite",
    "sandbox.sqlite-shm",
    "sandbox.sqlite-wal",
    "sandbox_secret",
    "sandbox_secret.new",
    "secret_keys",
    "secret_keys.new",
    "shop.sqlite",
    "shop.sqlite-shm",
    "shop.sqlite-wal",
    "stack.json",
    "stack.json.new",
    "supervisord.conf",
    "supervisord.conf.new",
    "supervisord.pid",
    "lock",
)


def clean(options: Options) -> None:
    """Remove the files of a stack from STACK_DIR. Other files stay. Raises StackError while a stack runs there."""
    directory = options.directory
    if not (directory / "lock").exists():
        return
    with lock_directory(directory, os.getpid()):
        stop_orphans(directory, print)
        for name in STACK_FILES:
            path = directory / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    if not any(directory.iterdir()):
        directory.rmdir()

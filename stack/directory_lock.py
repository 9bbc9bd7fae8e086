"""One stack per directory: a lock that ends with the process that holds it, however that ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.errors import StackError


@contextmanager
def lock_directory(directory: Path, own_pid: int) -> Iterator[None]:
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

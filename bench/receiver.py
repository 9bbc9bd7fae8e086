"""Starts and controls the process of `bench.endpoint`, which receives webhooks."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import IO

import msgspec

from bench.endpoint import COUNT, EXPECT, TAKE, Receipts

_POLL_INTERVAL_S = 0.05


class Receiver:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._commands: IO[bytes] = process.stdin
        self._replies: IO[bytes] = process.stdout
        ready, silent = msgspec.json.decode(self._replies.readline(), type=tuple[int, int])
        self._url = f"http://127.0.0.1:{ready}"
        self._silent_url = f"http://127.0.0.1:{silent}"

    def hook(self, path: str, secret: str, *, is_silent: bool = False) -> str:
        """Return a URL for webhooks signed with this secret. A silent one neither responds nor counts."""
        self._call(EXPECT + f"/{path} {secret}\n".encode())
        return f"{self._silent_url if is_silent else self._url}/{path}"

    def count(self) -> int:
        return msgspec.json.decode(self._call(COUNT), type=int)

    def take(self) -> Receipts:
        return msgspec.json.decode(self._call(TAKE), type=Receipts)

    def wait_for(self, count: int, timeout_s: float) -> None:
        """Wait for so many webhooks. Fails if none arrives for `timeout_s`: a slow machine may take longer in all."""
        deadline, before = monotonic() + timeout_s, 0
        while (received := self.count()) < count:
            if received > before:
                deadline, before = monotonic() + timeout_s, received
            assert monotonic() < deadline, f"only {received} of {count} webhooks arrived"
            sleep(_POLL_INTERVAL_S)

    def _call(self, command: bytes) -> bytes:
        self._commands.write(command)
        self._commands.flush()
        return self._replies.readline()


@contextmanager
def receiver() -> Iterator[Receiver]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.endpoint"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield Receiver(process)  # it exits when its pipes are closed

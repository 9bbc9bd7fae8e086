"""A merchant that receives webhooks and remembers when: the process of `bench.endpoint`, as measurements see it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import IO

import msgspec

from bench.endpoint import COUNT, EXPECT, TAKE, Receipts

_LOOK_EVERY_S = 0.05


class Receiver:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked: IO[bytes] = process.stdin
        self._told: IO[bytes] = process.stdout
        ready, silent = msgspec.json.decode(self._told.readline(), type=tuple[int, int])
        self._url = f"http://127.0.0.1:{ready}"
        self._silent_url = f"http://127.0.0.1:{silent}"

    def hook(self, path: str, secret: str, *, is_silent: bool = False) -> str:
        """A URL for webhooks that are signed with this secret. At a silent one nobody is answered, or counted."""
        self._ask(EXPECT + f"/{path} {secret}\n".encode())
        return f"{self._silent_url if is_silent else self._url}/{path}"

    def count(self) -> int:
        return msgspec.json.decode(self._ask(COUNT), type=int)

    def take(self) -> Receipts:
        return msgspec.json.decode(self._ask(TAKE), type=Receipts)

    def wait_for(self, count: int, patience_s: float) -> None:
        deadline = monotonic() + patience_s
        while (received := self.count()) < count:
            assert monotonic() < deadline, f"only {received} of {count} webhooks came in"
            sleep(_LOOK_EVERY_S)

    def _ask(self, question: bytes) -> bytes:
        self._asked.write(question)
        self._asked.flush()
        return self._told.readline()


@contextmanager
def receiver() -> Iterator[Receiver]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.endpoint"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield Receiver(process)  # and when its pipes are closed, it ends

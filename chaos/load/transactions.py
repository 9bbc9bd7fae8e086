"""Transactions on the product's database for the actions of operators, beside the event loop."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import psycopg
from psycopg import Connection

from shared.platform.encryption import SecretBox
from shared.platform.errors import RefusedError

_T = TypeVar("_T")

_KEY_VARIABLES = ("MIZAN_WEBHOOK_SECRET_KEYS", "MIZAN_SECRET_KEYS")


class LoadError(Exception):
    """The load could not be started or stopped as it should."""


def read_secret_box(environment: Mapping[str, str]) -> SecretBox:
    """Return the keys of webhook secrets from the environment of `mizan`. Raises LoadError if it has none."""
    keys: list[str] = []
    for name in _KEY_VARIABLES:
        file = environment.get(f"{name}_FILE")
        text = Path(file).read_text() if file else environment.get(name, "")
        keys += [key.strip() for key in text.split(",") if key.strip()]
    if not keys:
        raise LoadError(f"the environment of mizan has none of {', '.join(_KEY_VARIABLES)}")
    return SecretBox(tuple(keys))


class Transactions:
    """Runs each transaction in a thread of its own, because it blocks while PostgreSQL is stopped."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self.last_problem: str | None = None
        """Why the last transaction was refused, or its answer lost."""

    async def run(self, action: Callable[[Connection[Any]], _T]) -> _T | None:
        """Run an action in a transaction. Return its result, or None if it is not known to be committed.

        It may take as long as PostgreSQL is stopped.
        """
        ended: asyncio.Future[_T] = asyncio.Future()
        loop = ended.get_loop()

        def run() -> None:
            result: _T | Exception
            try:
                with self._connect() as connection:
                    result = action(connection)
            except Exception as error:  # noqa: BLE001  raised again in the thread of the load
                result = error
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_end, ended, result)

        Thread(target=run, name="operator", daemon=True).start()
        try:
            return await ended
        except (psycopg.Error, RefusedError) as error:
            self.last_problem = f"{type(error).__name__}: {error}"
            return None

    def _connect(self) -> Connection[Any]:
        return psycopg.connect(
            self._database_url,
            connect_timeout=5,
            # A connection that was cut without a word is noticed after about 11 s.
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            application_name="mizan-chaos-load",
            options="-c statement_timeout=20000",
        )


def _end(future: "asyncio.Future[_T]", result: _T | Exception) -> None:
    if future.done():  # cancelled
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)

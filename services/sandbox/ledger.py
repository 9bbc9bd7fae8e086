"""The ledger: one SQLite file, which a killed process leaves whole."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from services.sandbox.books import TABLES, Books

_BUSY_S = 5.0


class LedgerNotUsableError(Exception):
    """The file cannot be opened or made."""


class Ledger:
    """One connection that threads take turns with. Not to be carried over a fork."""

    def __init__(self, path: Path) -> None:
        self._turn = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _open(path)
        except (OSError, sqlite3.Error) as error:
            raise LedgerNotUsableError(f"the ledger {path} cannot be used: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[Books]:
        """All or nothing, and alone: also beside a process that has just been told to end."""
        with self._turn:
            self._connection.execute("begin immediate")
            try:
                yield Books(self._connection)
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    def check(self) -> None:
        """That it can be written to."""
        with self.transaction():
            pass

    def close(self) -> None:
        with self._turn:
            self._connection.close()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        # In this mode a kill loses nothing that was committed; only a power failure could.
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        connection.executescript(TABLES)
    except sqlite3.Error:
        connection.close()
        raise
    return connection

"""Whose password it is: counted first, then looked at, in no transaction, for that takes its time on purpose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from psycopg import Cursor

from shared.db.pool import Database
from shared.people.passwords import matching
from shared.people.throttles import Throttles


class HasPassword(Protocol):
    @property
    def password_hash(self) -> str | None: ...


P = TypeVar("P", bound=HasPassword)


@dataclass(frozen=True, slots=True)
class Tried(Generic[P]):
    known: Sequence[P]
    proven: Sequence[P]
    """Those of them whose password it is."""


@dataclass(frozen=True, slots=True)
class Prover:
    database: Database
    throttles: Throttles

    def count(self, account: str, address: str) -> None:
        """Raises SlowDownError: nothing is looked at."""
        with self.database.transaction() as connection:
            self.throttles.count(connection, account, address)

    def prove(
        self, account: str, address: str, find: Callable[[Cursor[Any]], Sequence[P]], password: str
    ) -> Tried[P]:
        """Takes as long for nobody as for somebody. Raises SlowDownError and TooManyPasswordsError."""
        self.count(account, address)
        with self.database.cursor() as cursor:
            known = find(cursor)
        right = matching([person.password_hash or "" for person in known], password)
        return Tried(known, [person for person in known if person.password_hash in right])

"""After a key was put before the others: seals with the first key what older ones have sealed, so that they can go."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox

BATCH = 500


@dataclass(frozen=True, slots=True)
class SealedColumn:
    table: str
    key: str
    """The table's key, as one value that can be compared."""
    column: str


SEALED = (
    SealedColumn("webhook_secrets", "application_id::text || '/' || version", "encrypted_secret"),
    SealedColumn("provider_accounts", "id::text", "encrypted_credentials"),
    SealedColumn("code_challenges", "attempt_id::text", "encrypted_phone"),
)

_PAGE = """
select {key}, {column} from {table} where {column} is not null and {key} > %s order by {key} limit %s"""
# Only what is as it was read: somebody may have rolled or removed it meanwhile.
_CHANGE = "update {table} set {column} = %s where {key} = %s and {column} = %s"


@dataclass(frozen=True, slots=True)
class Sealed:
    """How many secrets of a table each key opens; the place of None counts those that no key opens."""

    table: str
    by_key: Counter[int | None]


def count_sealed(connection: Connection[Any], box: SecretBox) -> list[Sealed]:
    return [
        Sealed(column.table, Counter(box.find_key(sealed) for _, sealed in _all(connection, column)))
        for column in SEALED
    ]


def reseal_all(database: Database, box: SecretBox) -> dict[str, int]:
    """How many of each table were sealed again. Each batch is a transaction; again is fine."""
    return {column.table: sum(_batches(database, box, column)) for column in SEALED}


def _batches(database: Database, box: SecretBox, column: SealedColumn) -> list[int]:
    changed, after = [], ""
    while True:
        with database.transaction() as connection:
            page = _page(connection, column, after)
            changed.append(sum(_reseal(connection, box, column, key, sealed) for key, sealed in page))
        if len(page) < BATCH:
            return changed
        after = page[-1][0]


def _reseal(connection: Connection[Any], box: SecretBox, column: SealedColumn, key: str, sealed: str) -> int:
    if box.find_key(sealed) in (0, None):
        return 0
    return connection.execute(_statement(_CHANGE, column), (box.reencrypt(sealed), key, sealed)).rowcount


def _all(connection: Connection[Any], column: SealedColumn) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    while True:
        page = _page(connection, column, found[-1][0] if found else "")
        found += page
        if len(page) < BATCH:
            return found


def _page(connection: Connection[Any], column: SealedColumn, after: str) -> list[tuple[str, str]]:
    return connection.execute(_statement(_PAGE, column), (after, BATCH)).fetchall()


def _statement(text: str, column: SealedColumn) -> sql.Composed:
    """`key` is an expression of this file."""
    return sql.SQL(text).format(
        table=sql.Identifier(column.table),
        column=sql.Identifier(column.column),
        key=sql.SQL(column.key),
    )

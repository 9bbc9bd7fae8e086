"""`mizan keys`: the keys of MIZAN_SECRET_KEYS, what each encrypts, and re-encryption with the first key."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import click
from cryptography.fernet import Fernet
from psycopg import Connection, sql

from mizan.command_context import acting_operator, command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_table
from shared.domain.audit_log import Action, add_audit_entry
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.settings import Settings

BATCH = 500


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    table: str
    key: str
    """The table's key as one SQL expression that can be compared."""
    column: str


ENCRYPTED_COLUMNS = (
    EncryptedColumn("webhook_secrets", "application_id::text || '/' || version", "encrypted_secret"),
    EncryptedColumn("provider_accounts", "id::text", "encrypted_credentials"),
    EncryptedColumn("code_challenges", "attempt_id::text", "encrypted_phone"),
)

_SELECT_PAGE = """
select {key}, {column} from {table} where {column} is not null and {key} > %s order by {key} limit %s"""
# Only if unchanged: the secret may have been rolled or removed since it was read.
_UPDATE = "update {table} set {column} = %s where {key} = %s and {column} = %s"


@dataclass(frozen=True, slots=True)
class EncryptedCounts:
    """How many secrets of a table each key decrypts; None counts those that no key decrypts."""

    table: str
    by_key: Counter[int | None]


def count_by_key(connection: Connection[Any], box: SecretBox) -> list[EncryptedCounts]:
    return [
        EncryptedCounts(
            column.table, Counter(box.find_key(sealed) for _, sealed in _read_all(connection, column))
        )
        for column in ENCRYPTED_COLUMNS
    ]


def reencrypt_all(database: Database, box: SecretBox) -> dict[str, int]:
    """Encrypt with the first key what other keys have encrypted. Return how many changed in each table.

    Each batch is a transaction, so it can be interrupted and run again.
    """
    return {column.table: sum(_reencrypt_column(database, box, column)) for column in ENCRYPTED_COLUMNS}


def _reencrypt_column(database: Database, box: SecretBox, column: EncryptedColumn) -> list[int]:
    changed, after = [], ""
    while True:
        with database.transaction() as connection:
            page = _read_page(connection, column, after)
            changed.append(sum(_reencrypt(connection, box, column, key, sealed) for key, sealed in page))
        if len(page) < BATCH:
            return changed
        after = page[-1][0]


def _reencrypt(
    connection: Connection[Any], box: SecretBox, column: EncryptedColumn, key: str, sealed: str
) -> int:
    if box.find_key(sealed) in (0, None):
        return 0
    return connection.execute(_statement(_UPDATE, column), (box.reencrypt(sealed), key, sealed)).rowcount


def _read_all(connection: Connection[Any], column: EncryptedColumn) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    while True:
        page = _read_page(connection, column, found[-1][0] if found else "")
        found += page
        if len(page) < BATCH:
            return found


def _read_page(connection: Connection[Any], column: EncryptedColumn, after: str) -> list[tuple[str, str]]:
    return connection.execute(_statement(_SELECT_PAGE, column), (after, BATCH)).fetchall()


def _statement(text: str, column: EncryptedColumn) -> sql.Composed:
    """Fill in the names. `key` is a constant SQL expression from ENCRYPTED_COLUMNS."""
    return sql.SQL(text).format(
        table=sql.Identifier(column.table),
        column=sql.Identifier(column.column),
        key=sql.SQL(column.key),
    )


@click.group("keys", cls=CommandGroup)
def keys_group() -> None:
    """Rotate the keys that stored secrets are encrypted with (docs/operations.md)."""


@keys_group.command("new")
def new_command() -> None:
    """Generate a random key and print it. It is not stored: put it into your secret store."""
    click.echo(Fernet.generate_key().decode())


@keys_group.command("status")
@json_option
def status_command(as_json: bool) -> None:
    """Show how many secrets each key decrypts. Exit code 1 if no key decrypts one of them."""
    with command_settings() as settings:
        is_whole = _show(settings, as_json=as_json)
    raise SystemExit(0 if is_whole else 1)


@keys_group.command("reseal")
@json_option
def reseal_command(as_json: bool) -> None:
    """Encrypt everything with the first key, so that the others can be removed. Safe to repeat."""
    with command_settings() as settings:
        box = SecretBox(settings.secret_keys)
        database = Database(settings.database, "operator")
        try:
            changed = reencrypt_all(database, box)
        finally:
            database.close()
        with open_transaction(settings) as connection:
            add_audit_entry(
                connection,
                acting_operator(),
                Action.SECRETS_REENCRYPTED,
                details={"count": sum(changed.values())},
            )
        is_whole = _show(settings, as_json=as_json)
    raise SystemExit(0 if is_whole else 1)


def _show(settings: Settings, *, as_json: bool) -> bool:
    """Print the table. Return whether every secret can be decrypted."""
    with open_transaction(settings) as connection:
        counted = count_by_key(connection, SecretBox(settings.secret_keys))
    rows = [
        {
            "table": one.table,
            **{f"key {place + 1}": one.by_key[place] for place in range(len(settings.secret_keys))},
            "no key": one.by_key[None],
        }
        for one in counted
    ]
    show_table(rows, "tables", as_json=as_json, empty="Nothing is encrypted.")
    return not any(one.by_key[None] for one in counted)

"""`mizan keys`: the keys of each purpose, what each of them encrypts, and re-encryption with the first key."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from cryptography.fernet import Fernet
from psycopg import Connection, sql

from mizan.command_context import acting_operator, command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_table
from shared.domain.audit_log import Action, add_audit_entry
from shared.platform.database.pool import Database
from shared.platform.encryption import NoSecretKeysError, SecretBox
from shared.platform.keys import COMMAND_LINE, PROCESS_PURPOSES, STORED_PURPOSES, open_keys
from shared.platform.settings import KEY_VARIABLES, KeyPurpose, Settings

BATCH = 500
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    purpose: KeyPurpose
    table: str
    key: str
    """The table's key as one SQL expression that can be compared."""
    column: str


ENCRYPTED_COLUMNS = (
    EncryptedColumn(
        KeyPurpose.WEBHOOK_SECRETS,
        "webhook_secrets",
        "application_id::text || '/' || version",
        "encrypted_secret",
    ),
    EncryptedColumn(
        KeyPurpose.PROVIDER_CREDENTIALS, "provider_accounts", "id::text", "encrypted_credentials"
    ),
    EncryptedColumn(KeyPurpose.CUSTOMER_DATA, "code_challenges", "attempt_id::text", "encrypted_phone"),
)

_SELECT_PAGE = """
select {key}, {column} from {table} where {column} is not null and {key} > %s order by {key} limit %s"""
# Only if unchanged: the secret may have been rolled or removed since it was read.
_UPDATE = "update {table} set {column} = %s where {key} = %s and {column} = %s"


@dataclass(frozen=True, slots=True)
class EncryptedCounts:
    """How many texts of a column each key decrypts, by its label; None counts those that no key decrypts."""

    column: EncryptedColumn
    by_key: Counter[str | None]


def count_by_key(connection: Connection[Any], box: SecretBox, column: EncryptedColumn) -> EncryptedCounts:
    counts: Counter[str | None] = Counter()
    after = ""
    while True:
        page = _read_page(connection, column, after)
        counts.update(box.find_key(sealed) for _, sealed in page)
        if len(page) < BATCH:
            return EncryptedCounts(column, counts)
        after = page[-1][0]


def reencrypt_column(database: Database, box: SecretBox, column: EncryptedColumn) -> int:
    """Encrypt with the first key what other keys have encrypted. Return how many texts changed.

    Each batch is a transaction, so it can be interrupted and run again.
    """
    changed, after = 0, ""
    while True:
        with database.transaction() as connection:
            page = _read_page(connection, column, after)
            changed += sum(_reencrypt(connection, box, column, key, sealed) for key, sealed in page)
        if len(page) < BATCH:
            return changed
        after = page[-1][0]


def _reencrypt(
    connection: Connection[Any], box: SecretBox, column: EncryptedColumn, key: str, sealed: str
) -> int:
    if box.find_key(sealed) in (box.key_labels[0], None):
        return 0
    return connection.execute(_statement(_UPDATE, column), (box.reencrypt(sealed), key, sealed)).rowcount


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
    """Rotate the keys of each purpose (docs/security.md, docs/operations/keys.md)."""


def _purpose_option(choices: Sequence[KeyPurpose], text: str) -> Callable[[_Command], _Command]:
    return click.option("--purpose", "name", type=click.Choice([one.value for one in choices]), help=text)


@keys_group.command("new")
@_purpose_option(list(KeyPurpose), "Also say which setting takes the key, and which processes need it.")
def new_command(name: str | None) -> None:
    """Generate a random key and print it. It is not stored: put it into your secret store."""
    click.echo(Fernet.generate_key().decode())
    if name is None:
        return
    purpose = KeyPurpose(name)
    processes = sorted(process for process, purposes in PROCESS_PURPOSES.items() if purpose in purposes)
    whose = "another one for each of" if purpose is KeyPurpose.SESSIONS else "the same for"
    click.echo(f"For {KEY_VARIABLES[purpose]}, {whose}: {', '.join(processes)}.", err=True)


@keys_group.command("status")
@_purpose_option(STORED_PURPOSES, "Only this one. [default: all whose keys are given]")
@json_option
def status_command(name: str | None, as_json: bool) -> None:
    """Show how many texts each key decrypts. Exit code 1 if no key decrypts one of them."""
    with command_settings(STORED_PURPOSES) as settings:
        is_whole = _show(settings, _open_boxes(settings, name), as_json=as_json)
    raise SystemExit(0 if is_whole else 1)


@keys_group.command("reseal")
@_purpose_option(STORED_PURPOSES, "Only this one. [default: all whose keys are given]")
@json_option
def reseal_command(name: str | None, as_json: bool) -> None:
    """Encrypt everything with the first key, so that the others can be removed. Safe to repeat."""
    with command_settings(STORED_PURPOSES) as settings:
        boxes = _open_boxes(settings, name)
        database = Database(settings.database, "operator")
        try:
            changed = {
                column.purpose: reencrypt_column(database, boxes[column.purpose], column)
                for column in ENCRYPTED_COLUMNS
                if column.purpose in boxes
            }
        finally:
            database.close()
        with open_transaction(settings) as connection:
            add_audit_entry(
                connection,
                acting_operator(),
                Action.SECRETS_REENCRYPTED,
                details={"count": sum(changed.values()), "purposes": sorted(changed)},
            )
        is_whole = _show(settings, boxes, as_json=as_json)
    raise SystemExit(0 if is_whole else 1)


def _open_boxes(settings: Settings, name: str | None) -> dict[KeyPurpose, SecretBox]:
    """Return the boxes of the purposes whose keys are given. Raises NoSecretKeysError if a wanted one is not.

    Without a name, every purpose of the command line is wanted; customer data is only taken if its keys are given.
    """
    keys, boxes = open_keys(settings), {}
    for purpose in STORED_PURPOSES if name is None else (KeyPurpose(name),):
        try:
            boxes[purpose] = keys.open_box(purpose)
        except NoSecretKeysError:
            if name is not None or purpose in PROCESS_PURPOSES[COMMAND_LINE]:
                raise
            click.echo(f"{purpose} is not looked at: {KEY_VARIABLES[purpose]} is not given.", err=True)
    return boxes


def _show(settings: Settings, boxes: dict[KeyPurpose, SecretBox], *, as_json: bool) -> bool:
    """Print the table. Return whether every text can be decrypted."""
    with open_transaction(settings) as connection:
        counted = [
            count_by_key(connection, boxes[column.purpose], column)
            for column in ENCRYPTED_COLUMNS
            if column.purpose in boxes
        ]
    labels = list(dict.fromkeys(label for box in boxes.values() for label in box.key_labels))
    rows = [
        {
            "purpose": one.column.purpose.value,
            "table": one.column.table,
            **{label: one.by_key[label] for label in labels},
            "no key": one.by_key[None],
        }
        for one in counted
    ]
    show_table(rows, "tables", as_json=as_json, empty="Nothing is encrypted.")
    return not any(one.by_key[None] for one in counted)

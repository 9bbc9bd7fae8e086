"""`mizan keys`: the keys of MIZAN_SECRET_KEYS, and what is encrypted with which of them."""

import click
from cryptography.fernet import Fernet

from mizan.installation import installation, transaction_in
from mizan.operator_account import operator
from mizan.output import json_option, show_table
from mizan.reencryption import count_sealed, reseal_all
from shared.domain.audit_log import Action, add_audit_entry
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.settings import Settings


@click.group("keys")
def keys_group() -> None:
    """Rotate the keys that stored secrets are encrypted with (docs/operations.md)."""


@keys_group.command("new")
def new_command() -> None:
    """Print a fresh key, made by chance. It is kept nowhere: put it into your secret store."""
    click.echo(Fernet.generate_key().decode())


@keys_group.command("status")
@json_option
def status_command(as_json: bool) -> None:
    """How many secrets each key opens. Exit code 1 when there is one that none opens."""
    with installation() as settings:
        is_whole = _show(settings, as_json=as_json)
    raise SystemExit(0 if is_whole else 1)


@keys_group.command("reseal")
@json_option
def reseal_command(as_json: bool) -> None:
    """Encrypt everything with the first key, so that the others can be taken out. Again is fine."""
    with installation() as settings:
        box = SecretBox(settings.secret_keys)
        database = Database(settings.database, "operator")
        try:
            changed = reseal_all(database, box)
        finally:
            database.close()
        with transaction_in(settings) as connection:
            add_audit_entry(
                connection, operator(), Action.SECRETS_REENCRYPTED, details={"count": sum(changed.values())}
            )
        is_whole = _show(settings, as_json=as_json)
    raise SystemExit(0 if is_whole else 1)


def _show(settings: Settings, *, as_json: bool) -> bool:
    """Whether every secret can be opened."""
    with transaction_in(settings) as connection:
        counted = count_sealed(connection, SecretBox(settings.secret_keys))
    rows = [
        {
            "table": one.table,
            **{f"key {place + 1}": one.by_key[place] for place in range(len(settings.secret_keys))},
            "no key": one.by_key[None],
        }
        for one in counted
    ]
    show_table(rows, as_json=as_json, empty="nothing is encrypted")
    return not any(one.by_key[None] for one in counted)

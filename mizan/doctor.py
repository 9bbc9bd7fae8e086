"""`mizan doctor`: checks on a live installation that each service holds only what it needs."""

import json
from collections.abc import Callable, Iterator

import click
import psycopg

from mizan.command_context import command_settings, one_line, open_database
from mizan.output import json_option, other_users_option
from shared.domain.kafka_principals import ALL_PRINCIPALS
from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.database.privileges import find_privilege_faults, find_session_faults
from shared.platform.database.schema import SchemaOutdatedError
from shared.platform.kafka.access_setup import AccessAdmin, AccessRefusedError, answers_without_login
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import Settings

_PARTS = ("PostgreSQL", "Kafka", "keys")


@click.command("doctor")
@json_option
@other_users_option
@click.option(
    "--only",
    "parts",
    multiple=True,
    type=click.Choice([name.lower() for name in _PARTS]),
    help="Check only this, where a container reaches no more. Can be repeated.",
)
def doctor_command(*, as_json: bool, other_users: bool, parts: tuple[str, ...]) -> None:
    """Check that each service may do what it needs and no more: in PostgreSQL, in Kafka, and with keys.

    It changes nothing. To read Kafka's ACLs it logs in as the admin, like `mizan topics`. Exit code 1 if anything is
    too wide or missing, or could not be checked; one that is down does not keep the others from being checked.
    """
    chosen = [name for name in _PARTS if not parts or name.lower() in parts]
    with command_settings(uses_kafka="Kafka" in chosen, as_kafka_admin=True) as settings:
        checks: dict[str, Callable[[], Iterator[str]]] = {
            "PostgreSQL": lambda: _check_database(settings),
            "Kafka": lambda: _check_kafka(settings, with_users=not other_users),
            "keys": lambda: _check_keys(settings),
        }
        faults = {name: list(checks[name]()) for name in chosen}
    if as_json:
        click.echo(json.dumps({"faults": faults}))
    else:
        for name, lines in faults.items():
            click.echo(f"{name}: {'nothing too wide, nothing missing' if not lines else ''}".rstrip())
            for line in lines:
                click.echo(f"  {line}")
    if any(faults.values()):
        raise click.exceptions.Exit(1)


def _check_database(settings: Settings) -> Iterator[str]:
    try:
        with open_database(settings) as database, database.transaction() as connection:
            faults = find_privilege_faults(connection)
            sessions = find_session_faults(connection)
    except (DatabaseUnavailableError, SchemaOutdatedError, psycopg.Error) as error:
        yield f"not checked: {one_line(error)}"
        return
    yield from (f"too wide: {fault}" for fault in (*faults.too_wide, *sessions))
    yield from (f"missing: {fault}" for fault in faults.missing)


def _check_kafka(settings: Settings, *, with_users: bool) -> Iterator[str]:
    access = AccessAdmin(settings.kafka)
    try:
        yield from access.compare(ALL_PRINCIPALS, with_users=with_users).lines()
        yield from (f"too wide: {fault}" for fault in access.find_open_listeners())
    except (AccessRefusedError, KafkaUnavailableError) as error:
        yield f"not checked: {one_line(error)} (Kafka at {settings.kafka.bootstrap_servers})"
        return
    if answers_without_login(settings.kafka):
        yield "too wide: it answers clients that do not log in"


def _check_keys(settings: Settings) -> Iterator[str]:
    if settings.secret_keys:
        yield (
            "too wide: MIZAN_SECRET_KEYS is a key for all purposes; run `mizan keys reseal`, then remove it "
            "(of `make run`: the file secret_keys in STACK_DIR)"
        )

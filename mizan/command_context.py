"""What every command needs: settings, a transaction, the acting operator for the audit log, and readable errors."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import click
import psycopg
from psycopg import Connection

from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.database.schema import SchemaOutdatedError, UnsupportedRevisionError, check_schema
from shared.platform.encryption import NoSecretKeysError
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.outbound_url import WebhookUrlError
from shared.platform.process import EX_CONFIG
from shared.platform.production.settings_rules import find_development_settings, find_start_problems
from shared.platform.redaction import redact_text
from shared.platform.settings import Settings, SettingsError, read_operator_environment


def acting_operator() -> Actor:
    """Return the operating system's user who runs the command, as the actor for the audit log."""
    try:
        account = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        account = "unknown"
    return Actor(f"operator {account}")


class StartRefused(click.ClickException):
    """The settings are refused, with the same exit code as a service that refuses to start."""

    exit_code = EX_CONFIG


@contextmanager
def command_settings() -> Iterator[Settings]:
    """Yield the settings. Errors of the settings, the database and Kafka end the command with one line and exit code 1.

    In production only development settings are refused: operators need the command line to repair everything else.
    """
    with _report_errors():
        reading = read_operator_environment()
        problems = {**find_development_settings(reading.settings), **reading.problems}
        if problems:
            raise SettingsError(problems)
        yield reading.settings


@contextmanager
def startup_settings() -> Iterator[Settings]:
    """Yield settings for commands that run before the services. Raises StartRefused if no service would start."""
    with _report_errors():
        reading = read_operator_environment()
        problems = find_start_problems(reading)
        if problems:
            raise StartRefused(redact_text(str(SettingsError(problems))))
        yield reading.settings


@contextmanager
def _report_errors() -> Iterator[None]:
    try:
        yield
    except (RefusedError, NoSecretKeysError, UnsupportedRevisionError, WebhookUrlError) as error:
        # Not redacted: these texts hold no secrets, and a credential's prefix must stay readable.
        raise click.ClickException(str(error)) from error
    except SchemaOutdatedError as error:
        raise click.ClickException(f"{error}; run `mizan migrate` first") from error
    except (DatabaseUnavailableError, psycopg.Error) as error:
        raise click.ClickException(_one_line(error)) from error
    except (SettingsError, KafkaUnavailableError) as error:
        raise click.ClickException(redact_text(str(error))) from error


@contextmanager
def open_transaction(settings: Settings) -> Iterator[Connection[Any]]:
    """Open a transaction on the database. Raises SchemaOutdatedError if its schema is not up to date."""
    database = Database(settings.database, "operator")
    try:
        check_schema(database)
        with database.transaction() as connection:
            yield connection
    finally:
        database.close()


def _one_line(error: Exception) -> str:
    return redact_text(" ".join(str(error).split()))


def record_application_action(
    connection: Connection[Any],
    action: Action,
    application_id: UUID,
    **details: str | int | list[str] | None,
) -> None:
    """Add an action of the acting operator to the audit log of the application's merchant. Details hold no secrets."""
    add_audit_entry(connection, acting_operator(), action, application_id=application_id, details=details)

"""Who works at the command line, for the audit log."""

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
    try:
        account = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        account = "unknown"
    return Actor(f"operator {account}")


class StartRefused(click.ClickException):
    """A job ends as a service does that is not started with these settings."""

    exit_code = EX_CONFIG


@contextmanager
def command_settings() -> Iterator[Settings]:
    """The settings; what goes wrong with them or the servers becomes one clear line and exit code 1.

    In production only what would be written wrongly is refused here, for this is how everything else is put right."""
    with _report_errors():
        reading = read_operator_environment()
        problems = {**find_development_settings(reading.settings), **reading.problems}
        if problems:
            raise SettingsError(problems)
        yield reading.settings


@contextmanager
def startup_settings() -> Iterator[Settings]:
    """For jobs that run before the services: what these would refuse to start with, they refuse."""
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
        # Written for the person who asked, and without secrets; a credential's prefix must stay readable.
        raise click.ClickException(str(error)) from error
    except SchemaOutdatedError as error:
        raise click.ClickException(f"{error}; run `mizan migrate` first") from error
    except (DatabaseUnavailableError, psycopg.Error) as error:
        raise click.ClickException(_one_line(error)) from error
    except (SettingsError, KafkaUnavailableError) as error:
        raise click.ClickException(redact_text(str(error))) from error


@contextmanager
def open_transaction(settings: Settings) -> Iterator[Connection[Any]]:
    """A transaction on the installation's database, whose schema must be up to date."""
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
    """In the transaction that does what is noted; never with a secret."""
    add_audit_entry(connection, acting_operator(), action, application_id=application_id, details=details)

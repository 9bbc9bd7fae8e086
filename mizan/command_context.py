"""What every command needs: settings, a transaction, the acting operator for the audit log, and readable errors."""

import os
import platform
import pwd
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import psycopg
from psycopg import Connection

from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.database.roles import MissingRolesError
from shared.platform.database.schema import SchemaOutdatedError, UnsupportedRevisionError, check_schema
from shared.platform.encryption import KeysUnavailableError, NoSecretKeysError
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.keys import COMMAND_LINE, PROCESS_PURPOSES
from shared.platform.outbound_url import WebhookUrlError
from shared.platform.process import EX_CONFIG
from shared.platform.production.settings_rules import find_command_problems, find_start_problems
from shared.platform.redaction import redact_text
from shared.platform.sanitize import sanitize_text
from shared.platform.settings import (
    KeyPurpose,
    Settings,
    SettingsError,
    find_stack_file,
    read_operator_environment,
    stack_directories,
)

_PROC = Path("/proc/self")
_CONTAINER_ID = re.compile("[0-9a-f]{64}")
_SHOWN_OF_CONTAINER_ID = 12
"""As many characters as `docker ps` shows."""


def acting_operator() -> Actor:
    """Return who runs the command, as the actor for the audit log: `cli operator mona (uid 1000)`.

    The uid is that of the process, and the name is its entry in the password database: the environment proves nothing.
    No account of the monitor or the dashboard has such a name, because those are email addresses. The address is the
    host, with the container if there is one.
    """
    uid = os.getuid()
    try:
        name = f"cli operator {pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:  # a container's user may have no name
        name = f"cli operator (uid {uid})"
    container = find_container_id(_read(_PROC / "cgroup"), _read(_PROC / "mountinfo"))
    host = platform.node() or "unknown host"
    address = f"{host}, container {container[:_SHOWN_OF_CONTAINER_ID]}" if container else host
    return Actor(sanitize_text(name), address=sanitize_text(address))


def find_container_id(cgroup: str, mountinfo: str) -> str | None:
    """Return the id of the container that this process runs in, or None.

    The path of its control group contains the id, unless the container sees only its own groups. Then the source of
    the file that the container's engine mounts as /etc/hostname does. Other mounts prove nothing: the host of a
    container sees them too.
    """
    # The fields of mountinfo: id, parent, device, path in the file system, path where it is mounted, …
    mounts = [line.split() for line in mountinfo.splitlines()]
    sources = [fields[3] for fields in mounts if len(fields) > 4 and fields[4] == "/etc/hostname"]
    found = (_CONTAINER_ID.search(text) for text in (cgroup, *sources))
    return next((match[0] for match in found if match), None)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # not Linux
        return ""


class StartRefused(click.ClickException):
    """The settings are refused, with the same exit code as a service that refuses to start."""

    exit_code = EX_CONFIG


@contextmanager
def command_settings(
    purposes: Collection[KeyPurpose] = PROCESS_PURPOSES[COMMAND_LINE],
    *,
    uses_kafka: bool = False,
    as_kafka_admin: bool = False,
) -> Iterator[Settings]:
    """Yield the settings. Errors of the settings, the database and Kafka end the command with one line and exit code 1.

    In production only development settings and keys of other purposes than `purposes` are refused: operators need the
    command line to repair everything else.
    """
    with report_errors():
        reading = read_operator_environment(uses_kafka=uses_kafka, as_kafka_admin=as_kafka_admin)
        problems = {**find_command_problems(reading.settings, purposes), **reading.problems}
        if problems:
            raise SettingsError(problems)
        yield reading.settings


@contextmanager
def startup_settings(*, uses_kafka: bool = True, as_owner: bool = False) -> Iterator[Settings]:
    """Yield settings for commands that run before the services. Raises StartRefused if no service would start.

    These commands need no keys. One that uses Kafka does so as the admin; migrations connect `as_owner`.
    """
    with report_errors():
        reading = read_operator_environment(uses_kafka=uses_kafka, as_kafka_admin=True, as_owner=as_owner)
        problems = find_start_problems(reading, COMMAND_LINE, needs_keys=False)
        if problems:
            raise StartRefused(redact_text(f"{SettingsError(problems)}{_stack_hint()}"))
        yield reading.settings


@contextmanager
def report_errors() -> Iterator[None]:
    """End the command with one line for errors that an operator can do something about."""
    try:
        yield
    except (
        RefusedError,
        MissingRolesError,
        NoSecretKeysError,
        UnsupportedRevisionError,
        WebhookUrlError,
    ) as error:
        # Not redacted: these texts hold no secrets, and a credential's prefix must stay readable.
        raise click.ClickException(str(error)) from error
    except KeysUnavailableError as error:
        raise click.ClickException(f"{error}. Nothing was changed by this step; run it again") from error
    except SchemaOutdatedError as error:
        raise click.ClickException(f"{error}; run `mizan migrate` first") from error
    except (DatabaseUnavailableError, psycopg.Error) as error:
        raise click.ClickException(one_line(error)) from error
    except SettingsError as error:
        raise click.ClickException(redact_text(f"{error}{_stack_hint()}")) from error
    except KafkaUnavailableError as error:
        servers = read_operator_environment().settings.kafka.bootstrap_servers
        raise click.ClickException(redact_text(f"{error} (Kafka at {servers})")) from error


def _stack_hint() -> str:
    """Return where a running stack was looked for, or nothing if one was found."""
    if find_stack_file() is not None:
        return ""
    places = " and ".join(map(str, stack_directories()))
    return (
        f"\nNo running stack was found in {places}: start one with `make run`, set STACK_DIR to its directory, or "
        "set DATABASE_URL and KAFKA_BOOTSTRAP_SERVERS."
    )


@contextmanager
def open_database(settings: Settings) -> Iterator[Database]:
    """Open the database, for several transactions. Raises SchemaOutdatedError if its schema is not up to date."""
    database = Database(settings.database, "operator")
    try:
        check_schema(database)
        yield database
    finally:
        database.close()


@contextmanager
def open_transaction(settings: Settings) -> Iterator[Connection[Any]]:
    """Open a transaction on the database. Raises SchemaOutdatedError if its schema is not up to date."""
    with open_database(settings) as database, database.transaction() as connection:
        yield connection


def one_line(error: Exception) -> str:
    """Return the text of an error in one line, without secrets."""
    return redact_text(" ".join(str(error).split()))


def record_application_action(
    connection: Connection[Any],
    action: Action,
    application_id: UUID,
    **details: str | int | list[str] | None,
) -> None:
    """Add an action of the acting operator to the audit log of the application's merchant. Details hold no secrets."""
    add_audit_entry(connection, acting_operator(), action, application_id=application_id, details=details)

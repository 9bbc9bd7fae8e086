"""Which installation a command works on, and how its troubles are told to a person at a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import psycopg
from psycopg import Connection

from shared.applications.errors import RefusedError
from shared.db.pool import Database, DatabaseUnavailableError
from shared.db.schema import SchemaOutdatedError, check_schema
from shared.kafka.clients import KafkaUnavailableError
from shared.redaction import redact_text
from shared.sealing import NoSecretKeysError
from shared.settings import Settings, SettingsError, read_operator_settings
from shared.webhook_url import WebhookUrlError


@contextmanager
def installation() -> Iterator[Settings]:
    """The settings; what goes wrong with them or the servers becomes one clear line and exit code 1."""
    try:
        yield read_operator_settings()
    except (RefusedError, NoSecretKeysError, WebhookUrlError) as error:
        # Written for the person who asked, and without secrets; a credential's prefix must stay readable.
        raise click.ClickException(str(error)) from error
    except SchemaOutdatedError as error:
        raise click.ClickException(f"{error}; run `mizan migrate` first") from error
    except (DatabaseUnavailableError, psycopg.Error) as error:
        raise click.ClickException(_in_one_line(error)) from error
    except (SettingsError, KafkaUnavailableError) as error:
        raise click.ClickException(redact_text(str(error))) from error


@contextmanager
def transaction_in(settings: Settings) -> Iterator[Connection[Any]]:
    """A transaction on the installation's database, whose schema must be up to date."""
    database = Database(settings.database, "operator")
    try:
        check_schema(database)
        with database.transaction() as connection:
            yield connection
    finally:
        database.close()


def _in_one_line(error: Exception) -> str:
    return redact_text(" ".join(str(error).split()))

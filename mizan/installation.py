"""Which installation a command works on, and how its troubles are told to a person at a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from shared.db.pool import DatabaseUnavailableError
from shared.kafka.clients import KafkaUnavailableError
from shared.redaction import redact_text
from shared.settings import Settings, SettingsError, read_operator_settings


@contextmanager
def installation() -> Iterator[Settings]:
    """The settings; what goes wrong with them or the servers becomes one clear line and exit code 1."""
    try:
        yield read_operator_settings()
    except (SettingsError, DatabaseUnavailableError, KafkaUnavailableError) as error:
        raise click.ClickException(redact_text(str(error))) from error

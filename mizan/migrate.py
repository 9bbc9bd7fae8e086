"""`mizan migrate`."""

import click

from mizan.command_context import startup_settings
from shared.platform.migrations.runner import migrate
from shared.platform.settings import Environment


@click.command("migrate")
def migrate_command() -> None:
    """Bring the database's schema up to date. Safe to repeat, and to run several times at once."""
    with startup_settings(uses_kafka=False, as_owner=True) as settings:
        is_production = settings.environment is Environment.PRODUCTION
        revision = migrate(settings.database.url, is_production=is_production)
        click.echo(f"schema is at revision {revision}")

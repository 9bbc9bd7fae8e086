"""`mizan migrate`: brings the schema up to date."""

import click

from mizan.installation import installation_to_start
from shared.platform.migrations.runner import migrate


@click.command("migrate")
def migrate_command() -> None:
    """Bring the database's schema up to date. Safe to run again, and by several at once."""
    with installation_to_start() as settings:
        click.echo(f"schema is at revision {migrate(settings.database.url)}")

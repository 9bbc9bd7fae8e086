"""`mizan remove-demo`: for a database that was tried out with the demo before it goes into production."""

import click

from mizan.installation import installation, transaction_in
from mizan.operator_account import operator
from shared.production.demo_data import remove_demo_data


@click.command("remove-demo")
def remove_demo_command() -> None:
    """Shut the demo off: its operator and members are removed, its API keys and tokens revoked, its webhooks ended.
    Its payments stay in the books. Again is fine."""
    with installation() as settings, transaction_in(settings) as connection:
        removed = remove_demo_data(connection, operator())
    click.echo("the demo is shut off" if removed else "there is no demo here")

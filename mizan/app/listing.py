"""`mizan app list`."""

import click

from mizan.installation import installation, transaction_in
from mizan.output import json_option, show_table, timestamp
from shared.domain.applications.registry import list_applications


@click.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List all applications, oldest first."""
    with installation() as settings, transaction_in(settings) as connection:
        applications = list_applications(connection)
    show_table(
        [
            {
                "application_id": application.id,
                "created_at": timestamp(application.created_at),
                "methods": application.methods,
                "name": application.name,
                "merchant": application.merchant_name,
                "merchant_id": application.merchant_id,
                "webhook_url": application.webhook_url,
            }
            for application in applications
        ],
        as_json=as_json,
        empty="There are no applications yet; `mizan app create` makes one.",
    )

"""`mizan app`: merchants' applications, their credentials and their webhooks."""

import click

from mizan.app.applications import create_command, list_command
from mizan.app.credentials import credentials_command, issue_key_command, issue_token_command, revoke_command
from mizan.app.provider import set_provider_command
from mizan.app.webhooks import (
    pause_webhooks_command,
    resume_webhooks_command,
    roll_secret_command,
    set_webhook_command,
)
from mizan.output import CommandGroup


@click.group("app", cls=CommandGroup)
def app_group() -> None:
    """Create and manage merchants' applications. APP is an application's id, as `mizan app list` shows."""


for _command in (
    create_command,
    list_command,
    set_provider_command,
    set_webhook_command,
    roll_secret_command,
    pause_webhooks_command,
    resume_webhooks_command,
    credentials_command,
    issue_key_command,
    issue_token_command,
    revoke_command,
):
    app_group.add_command(_command)

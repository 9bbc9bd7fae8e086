"""`mizan app set-webhook`, `roll-secret`, `pause-webhooks` and `resume-webhooks`, and `mizan resend`."""

from typing import Any
from uuid import UUID, uuid4

import click
from psycopg import Connection

from mizan.app.applications import application_argument, parse_webhook_url
from mizan.command_context import command_settings, open_transaction, record_application_action
from mizan.output import json_option, show_values
from shared.domain.applications.registry import set_webhook_url
from shared.domain.applications.webhook_secrets import roll_webhook_secret
from shared.domain.audit_log import Action
from shared.domain.deliveries.pause import pause_webhooks, resume_webhooks
from shared.domain.deliveries.resend import get_application_id, request_resend
from shared.platform.keys import open_keys
from shared.platform.outbound_url import WebhookUrl
from shared.platform.settings import KeyPurpose
from shared.platform.uuids import parse_uuid


@click.command("set-webhook")
@application_argument
@click.argument("url", required=False)
@click.option("--none", "remove", is_flag=True, help="Remove the URL and send no more webhooks.")
def set_webhook_command(application_id: UUID, url: str | None, remove: bool) -> None:
    """Set the URL for an application's webhooks. Retries queued earlier keep the old one."""
    if (url is None) != remove:
        raise click.UsageError("Give either a URL or --none.")
    with command_settings() as settings:
        checked = parse_webhook_url(url, settings)
        with open_transaction(settings) as connection:
            change_webhook_url(connection, application_id, checked)
    click.echo("webhook URL removed" if remove else "webhook URL set")


def change_webhook_url(connection: Connection[Any], application_id: UUID, url: WebhookUrl | None) -> None:
    """Set the webhook URL, or remove it, and record that. Raises ApplicationNotFoundError."""
    set_webhook_url(connection, application_id, url)
    if url is None:
        record_application_action(connection, Action.WEBHOOK_URL_REMOVED, application_id)
    else:
        record_application_action(connection, Action.WEBHOOK_URL_SET, application_id, url=url)


@click.command("roll-secret")
@application_argument
@json_option
def roll_secret_command(application_id: UUID, as_json: bool) -> None:
    """Create a new webhook secret for an application and print it, once."""
    with command_settings() as settings:
        box = open_keys(settings).open_box(KeyPurpose.WEBHOOK_SECRETS)
        with open_transaction(settings) as connection:
            secret = roll_webhook_secret(connection, box, application_id)
            record_application_action(
                connection, Action.WEBHOOK_SECRET_ROLLED, application_id, version=secret.version
            )
    show_values(
        {"application_id": application_id, "webhook_secret": secret.text, "version": secret.version},
        as_json=as_json,
        note="The secret is shown once. Retries queued earlier are still signed with the old one.",
    )


@click.command("pause-webhooks")
@application_argument
def pause_webhooks_command(application_id: UUID) -> None:
    """Pause an application's webhooks. Deliveries that fall due are kept."""
    with command_settings() as settings, open_transaction(settings) as connection:
        if pause_webhooks(connection, application_id):
            record_application_action(connection, Action.WEBHOOKS_PAUSED, application_id)
    click.echo("paused: deliveries that fall due are set aside until `mizan app resume-webhooks`")


@click.command("resume-webhooks")
@application_argument
def resume_webhooks_command(application_id: UUID) -> None:
    """Resume an application's webhooks, starting with the deliveries that fell due meanwhile."""
    with command_settings() as settings, open_transaction(settings) as connection:
        if resume_webhooks(connection, application_id):
            record_application_action(connection, Action.WEBHOOKS_RESUMED, application_id)
    click.echo("resumed")


@click.command("resend")
@click.argument("delivery", metavar="DELIVERY")
def resend_command(delivery: str) -> None:
    """Resend a webhook delivery at once, to the application's current URL and with its current secret."""
    delivery_id = parse_uuid(delivery)
    if delivery_id is None:
        raise click.ClickException("DELIVERY must be a delivery's id, a uuid")
    with command_settings() as settings, open_transaction(settings) as connection:
        request_resend(connection, delivery_id, uuid4())
        record_application_action(
            connection,
            Action.DELIVERY_RESENT,
            get_application_id(connection, delivery_id),
            delivery=str(delivery_id),
        )
    click.echo(f"requested; `mizan delivery show {delivery_id}` shows the outcome")

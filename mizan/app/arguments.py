"""Arguments that several commands of `mizan app` take."""

from uuid import UUID

import click

from shared.platform.outbound_url import WebhookUrl, check_webhook_url
from shared.platform.settings import Settings
from shared.platform.uuids import parse_uuid


def webhook_url_in(text: str | None, settings: Settings) -> WebhookUrl | None:
    """Inside `installation()`, which tells what is wrong with a URL."""
    return None if text is None else check_webhook_url(text, allow_private=settings.webhooks.allow_private)


def _application_id(_context: click.Context, _parameter: click.Parameter, text: str) -> UUID:
    application_id = parse_uuid(text)
    if application_id is None:
        raise click.ClickException("APP must be an application's id, a uuid as `mizan app list` shows")
    return application_id


application_argument = click.argument("application_id", metavar="APP", callback=_application_id)

"""`mizan app create` and `mizan app list`, and the arguments that the other commands of `mizan app` share."""

from uuid import UUID

import click

from mizan.command_context import command_settings, open_transaction, record_application_action
from mizan.output import json_option, show_table, show_values, timestamp
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.registry import NewApplication, create_application, list_applications
from shared.domain.audit_log import Action
from shared.domain.payment_methods import PaymentMethod
from shared.platform.keys import open_keys
from shared.platform.outbound_url import WebhookUrl, check_webhook_url
from shared.platform.settings import KeyPurpose, Settings
from shared.platform.uuids import parse_uuid


def parse_webhook_url(text: str | None, settings: Settings) -> WebhookUrl | None:
    """Return the checked URL. Raises WebhookUrlError, which `command_settings` reports."""
    return None if text is None else check_webhook_url(text, allow_private=settings.webhooks.allow_private)


def parse_application_id(_context: click.Context, _parameter: click.Parameter, text: str) -> UUID:
    application_id = parse_uuid(text)
    if application_id is None:
        raise click.ClickException("APP must be an application's id, a uuid as `mizan app list` shows")
    return application_id


application_argument = click.argument("application_id", metavar="APP", callback=parse_application_id)
application_option = click.option(
    "--app",
    "application_id",
    metavar="APP",
    required=True,
    callback=parse_application_id,
    help="The application's id, as `mizan app list` shows.",
)


@click.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List all applications, oldest first."""
    with command_settings() as settings, open_transaction(settings) as connection:
        applications = list_applications(connection)
    show_table(
        [
            {
                "application_id": application.id,
                "created_at": timestamp(application.created_at),
                "methods": application.methods,
                "mode": application.mode,
                "name": application.name,
                "merchant": application.merchant_name,
                "merchant_id": application.merchant_id,
                "webhook_url": application.webhook_url,
            }
            for application in applications
        ],
        "applications",
        as_json=as_json,
        empty="There are no applications yet; `mizan app create` creates one.",
    )


def _parse_methods(
    _context: click.Context, _parameter: click.Parameter, text: str
) -> frozenset[PaymentMethod]:
    try:
        return frozenset(PaymentMethod(name.strip()) for name in text.split(","))
    except ValueError:
        raise click.BadParameter(f"name one or more of {','.join(PaymentMethod)}") from None


@click.command("create")
@click.option("--name", required=True)
@click.option("--webhook-url", help="Where its webhooks go. Without one, none are sent.")
@click.option(
    "--methods",
    default=",".join(PaymentMethod),
    show_default=True,
    callback=_parse_methods,
    help="Payment methods.",
)
@click.option(
    "--merchant",
    help="A merchant's id or name; a new name creates a merchant. [default: a new one, named like the application]",
)
@click.option(
    "--live",
    "is_live",
    is_flag=True,
    help="For real payments at the merchant's own provider accounts. [default: for tests, at the sandbox]",
)
@json_option
def create_command(
    *,
    name: str,
    webhook_url: str | None,
    methods: frozenset[PaymentMethod],
    merchant: str | None,
    is_live: bool,
    as_json: bool,
) -> None:
    """Create an application and print its credentials, which are shown once."""
    with command_settings() as settings:
        box = open_keys(settings).open_box(KeyPurpose.WEBHOOK_SECRETS)
        new = NewApplication(
            name=name,
            merchant=merchant and (parse_uuid(merchant) or merchant),
            methods=methods,
            webhook_url=parse_webhook_url(webhook_url, settings),
            mode=ApplicationMode.LIVE if is_live else ApplicationMode.TEST,
        )
        with open_transaction(settings) as connection:
            created = create_application(connection, box, new)
            record_application_action(
                connection,
                Action.APPLICATION_CREATED,
                created.id,
                name=name.strip(),
                mode=new.mode,
                methods=sorted(methods),
                url=new.webhook_url,
            )
    show_values(
        {
            "application_id": created.id,
            "api_key": created.api_key,
            "access_token": created.access_token,
            "webhook_secret": created.webhook_secret,
        },
        as_json=as_json,
        note="The last three are shown once: store them now, on the merchant's server only.",
    )

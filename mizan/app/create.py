"""`mizan app create`."""

import click

from mizan.app.arguments import webhook_url_in
from mizan.app.noting import note
from mizan.installation import installation, transaction_in
from mizan.output import json_option, show_values
from shared.domain.applications.registry import NewApplication, create_application
from shared.domain.audit_log import Action
from shared.domain.payment_methods import PaymentMethod
from shared.platform.encryption import SecretBox
from shared.platform.uuids import parse_uuid


def _methods(_context: click.Context, _parameter: click.Parameter, text: str) -> frozenset[PaymentMethod]:
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
    callback=_methods,
    help="Payment methods.",
)
@click.option(
    "--merchant",
    help="An existing merchant's id, or a name, made if it is new. [default: a new one, named like the application]",
)
@json_option
def create_command(
    name: str, webhook_url: str | None, methods: frozenset[PaymentMethod], merchant: str | None, as_json: bool
) -> None:
    """Create an application and print its credentials, which are shown once."""
    with installation() as settings:
        box = SecretBox(settings.secret_keys)
        new = NewApplication(
            name=name,
            merchant=merchant and (parse_uuid(merchant) or merchant),
            methods=methods,
            webhook_url=webhook_url_in(webhook_url, settings),
        )
        with transaction_in(settings) as connection:
            created = create_application(connection, box, new)
            note(
                connection,
                Action.APPLICATION_CREATED,
                created.id,
                name=name.strip(),
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
        note="The last three are shown once: keep them now, on the merchant's server only.",
    )

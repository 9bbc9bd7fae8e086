"""`mizan resend`."""

from uuid import uuid4

import click

from mizan.app.noting import note
from mizan.installation import installation, transaction_in
from shared.domain.audit_log import Action
from shared.domain.deliveries.resend import get_application_id, request_resend
from shared.platform.uuids import parse_uuid


@click.command("resend")
@click.argument("delivery", metavar="DELIVERY")
def resend_command(delivery: str) -> None:
    """Send a webhook delivery once more, at once, to the application's URL and with its secret as they are now."""
    delivery_id = parse_uuid(delivery)
    if delivery_id is None:
        raise click.ClickException("DELIVERY must be a delivery's id, a uuid")
    with installation() as settings, transaction_in(settings) as connection:
        request_resend(connection, delivery_id, uuid4())
        note(
            connection,
            Action.DELIVERY_RESENT,
            get_application_id(connection, delivery_id),
            delivery=str(delivery_id),
        )
    click.echo("asked for; its tries tell how it went")

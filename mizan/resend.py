"""`mizan resend`."""

from uuid import uuid4

import click

from mizan.installation import installation, transaction_in
from shared.uuid_text import uuid_in
from shared.webhooks.resending import request_resend


@click.command("resend")
@click.argument("delivery", metavar="DELIVERY")
def resend_command(delivery: str) -> None:
    """Send a webhook delivery once more, at once, to the application's URL and with its secret as they are now."""
    delivery_id = uuid_in(delivery)
    if delivery_id is None:
        raise click.ClickException("DELIVERY must be a delivery's id, a uuid")
    with installation() as settings, transaction_in(settings) as connection:
        request_resend(connection, delivery_id, uuid4())
    click.echo("asked for; its tries tell how it went")

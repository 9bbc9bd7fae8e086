"""`mizan search`: finds payments of all merchants."""

from datetime import datetime

import click

from mizan.command_context import command_settings, open_database
from mizan.output import json_option, show_table, timestamp
from services.monitor.search.queries import search_payments
from shared.console.bounded_search import PERIOD
from shared.console.search_text import MAX_SEARCH, SearchText, is_searchable
from shared.platform.uuids import parse_uuid


@click.command("search")
@click.argument("text")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d"]),
    help=f"Look at payments since this day. [default: the last {PERIOD.days} days, and older ones found by an index]",
)
@click.option("--before", help="Show matches before this uuid: the one that the last page named.")
@json_option
def search_command(text: str, since: datetime | None, before: str | None, as_json: bool) -> None:
    """Search for payments of all merchants, newest first.

    TEXT is a uuid of an intent, an attempt or a delivery, a reference or its beginning, or a part of a reference, a
    customer, a description or a provider's reference, or an amount. UUIDs, references and their beginnings are found
    however old they are.
    """
    text = text.strip()
    if not text or len(text) > MAX_SEARCH or not is_searchable(text):
        raise click.BadParameter(f"give 1 to {MAX_SEARCH} characters", param_hint="TEXT")
    before_id = parse_uuid(before) if before is not None else None
    if before is not None and before_id is None:
        raise click.BadParameter("not a uuid", param_hint="--before")
    with command_settings() as settings, open_database(settings) as database:
        page = search_payments(database, SearchText(text), since.date() if since else None, before_id)
    rows = [
        {
            "created_at": timestamp(found.created_at),
            "merchant": found.merchant,
            "application": found.application,
            "mode": found.mode,
            "uuid": found.uuid,
            "merchant_reference": found.merchant_reference,
            "reference": found.reference.upper(),
            "amount": found.amount,
            "status": found.status,
        }
        for found in page.rows
    ]
    show_table(rows, "payments", as_json=as_json, empty="nothing found")
    if page.looked_back is not None:
        click.echo(f"searched everything since {timestamp(page.looked_back.to)}", err=True)
    if page.next_before is not None:
        click.echo(f"there is more: add --before {page.next_before}", err=True)

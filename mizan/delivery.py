"""`mizan delivery`: one webhook delivery with its tries."""

from collections.abc import Mapping
from typing import Any

import click

from mizan.command_context import command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_with_rows, timestamp
from services.dashboard.deliveries.queries import Delivery, DeliveryTry, find_delivery, list_tries
from shared.domain.deliveries.resend import get_application_id
from shared.platform.uuids import parse_uuid


@click.group("delivery", cls=CommandGroup)
def delivery_group() -> None:
    """Show webhook deliveries."""


@delivery_group.command("show")
@click.argument("name", metavar="DELIVERY")
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show a delivery and its tries, the latest first. DELIVERY is its id."""
    delivery_id = parse_uuid(name)
    if delivery_id is None:
        raise click.ClickException("DELIVERY must be a delivery's id, a uuid")
    with command_settings() as settings, open_transaction(settings) as connection:
        application_id = get_application_id(connection, delivery_id)
        delivery = find_delivery(connection, application_id, delivery_id)
        assert delivery is not None
        tries = list_tries(connection, application_id, delivery)
    values = {"delivery_id": delivery.id, "application_id": application_id, **_details(delivery)}
    show_with_rows(values, [_try_row(one) for one in tries], "tries", as_json=as_json)


def _details(delivery: Delivery) -> Mapping[str, Any]:
    return {
        "intent": delivery.intent_uuid,
        "event": delivery.event,
        "created_at": timestamp(delivery.created_at),
        "status": delivery.status,
        "is_paused": delivery.is_set_aside,
        "is_test": delivery.is_test,
        "next_due_at": timestamp(delivery.next_due_at),
        "url": delivery.url,
        "secret_version": delivery.secret_version,
    }


def _try_row(one: DeliveryTry) -> Mapping[str, Any]:
    """A try without a step is a resend."""
    return {
        "number": one.number,
        "step": one.step,
        "at": timestamp(one.at),
        "duration_ms": one.duration_ms,
        "status_code": one.status_code,
        "failure": one.failure,
        "url": one.url,
        "response": one.response_text,
    }

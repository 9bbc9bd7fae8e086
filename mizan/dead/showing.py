"""`mizan dead show`."""

from collections.abc import Mapping
from typing import Any

import click

from mizan.dead.names import delivery_named, letter_named
from mizan.installation import installation, transaction_in
from mizan.output import json_option, show_values, timestamp
from shared.domain.dead_letters.queries import DeadLetterView
from shared.domain.deliveries.exhausted import ExhaustedDelivery, get_exhausted


@click.command("show")
@click.argument("name", metavar="ID")
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show a dead letter with its record, or a delivery with its last answer; never a secret."""
    with installation() as settings, transaction_in(settings) as connection:
        delivery_id = delivery_named(name)
        if delivery_id is None:
            letter = letter_named(connection, settings.kafka, name)
            _show(_letter(letter), "value", letter.value, as_json)
        else:
            delivery = get_exhausted(connection, delivery_id)
            _show(_delivery(delivery), "last_answer", delivery.last_answer, as_json)


def _show(values: Mapping[str, Any], text_name: str, text: str | None, as_json: bool) -> None:
    """For people the text stands below the rest, as it may have many lines."""
    if as_json:
        show_values({**values, text_name: text}, as_json=True, note="")
    else:
        show_values(values, as_json=False, note=f"\n{text}" if text else "")


def _letter(letter: DeadLetterView) -> Mapping[str, Any]:
    replayed = letter.replayed
    return {
        "letter_id": letter.id,
        "offset": letter.offset,
        "at": timestamp(letter.at),
        "topic": letter.topic,
        "partition": letter.partition,
        "origin_offset": letter.origin_offset,
        "group": letter.group,
        "reason": letter.reason,
        "replayed_at": timestamp(replayed.at) if replayed else None,
        "replayed_by": replayed.actor if replayed else None,
        "is_whole": letter.is_whole,
        "size": letter.size,
        "key": letter.key,
    }


def _delivery(delivery: ExhaustedDelivery) -> Mapping[str, Any]:
    return {
        "delivery_id": delivery.delivery_id,
        "at": timestamp(delivery.at),
        "merchant": delivery.merchant,
        "application": delivery.application,
        "application_id": delivery.application_id,
        "event": delivery.event,
        "url": delivery.url,
        "status": delivery.status,
        "tries": delivery.tries,
        "last_status_code": delivery.last_status_code,
        "last_failure": delivery.last_failure,
        "resent_at": timestamp(delivery.resent_at),
    }

"""`mizan dead list`."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import click
from psycopg import Connection

from mizan.installation import installation, transaction_in
from mizan.output import json_option, show_table, timestamp
from shared.domain.dead_letters.queries import DeadLetterView, list_dead_letters
from shared.domain.deliveries.exhausted import ExhaustedDelivery, list_exhausted
from shared.platform.settings import KafkaSettings

_LETTERS, _DELIVERIES = "letters", "deliveries"
_WIDEST_REASON = 100


@click.command("list")
@click.option(
    "--kind",
    type=click.Choice([_LETTERS, _DELIVERIES]),
    default=_LETTERS,
    show_default=True,
    help="Records that nobody could process, or webhook deliveries that used up their tries.",
)
@click.option("--origin", metavar="TOPIC", help="Only letters that came from this topic.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@json_option
def list_command(kind: str, origin: str | None, limit: int, as_json: bool) -> None:
    """List what ended badly, newest first."""
    if origin is not None and kind != _LETTERS:
        raise click.UsageError("--origin is for letters")
    rows: Iterator[Mapping[str, Any]]
    with installation() as settings, transaction_in(settings) as connection:
        if kind == _LETTERS:
            rows = (_letter(one, as_json) for one in _letters(connection, settings.kafka, origin, limit))
        else:
            rows = map(_delivery, _deliveries(connection, settings.kafka, limit))
        listed = list(islice(rows, limit))
    empty = "There are no dead letters." if kind == _LETTERS else "No delivery has used up its tries."
    show_table(listed, as_json=as_json, empty=empty)


def _letters(
    connection: Connection[Any], kafka: KafkaSettings, origin: str | None, limit: int
) -> Iterator[DeadLetterView]:
    page = list_dead_letters(connection, kafka, None, limit, origin)
    yield from page.dead_letters
    while page.next_before is not None:
        page = list_dead_letters(connection, kafka, page.next_before, limit, origin)
        yield from page.dead_letters


def _deliveries(connection: Connection[Any], kafka: KafkaSettings, limit: int) -> Iterator[ExhaustedDelivery]:
    page = list_exhausted(connection, kafka, None, limit)
    yield from page.deliveries
    while page.next_before is not None:
        page = list_exhausted(connection, kafka, page.next_before, limit)
        yield from page.deliveries


def _letter(letter: DeadLetterView, as_json: bool) -> Mapping[str, Any]:
    shortened = letter.reason if as_json else letter.reason[:_WIDEST_REASON]
    return {
        "letter_id": letter.id,
        "offset": letter.offset,
        "at": timestamp(letter.at),
        "topic": letter.topic,
        "partition": letter.partition,
        "origin_offset": letter.origin_offset,
        "group": letter.group,
        "size": letter.size,
        "replayed_at": timestamp(letter.replayed.at) if letter.replayed else None,
        "reason": shortened,
    }


def _delivery(delivery: ExhaustedDelivery) -> Mapping[str, Any]:
    return {
        "delivery_id": delivery.delivery_id,
        "at": timestamp(delivery.at),
        "merchant": delivery.merchant,
        "application": delivery.application,
        "event": delivery.event,
        "status": delivery.status,
        "tries": delivery.tries,
        "last_status_code": delivery.last_status_code,
        "last_failure": delivery.last_failure,
        "resent_at": timestamp(delivery.resent_at),
        "url": delivery.url,
    }

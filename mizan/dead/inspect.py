"""`mizan dead list` and `mizan dead show`, and how both find a dead letter or a delivery by its ID."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from uuid import UUID

import click
from psycopg import Connection

from mizan.command_context import command_settings, open_transaction
from mizan.output import json_option, show_table, show_values, timestamp
from shared.domain.dead_letters.queries import (
    DeadLetterView,
    find_dead_letter,
    get_dead_letter,
    list_dead_letters,
)
from shared.domain.deliveries.exhausted import ExhaustedDelivery, get_exhausted, list_exhausted
from shared.platform.settings import KafkaSettings
from shared.platform.uuids import parse_uuid

_DEAD_LETTERS, _DELIVERIES = "letters", "deliveries"
_MAX_REASON_WIDTH = 100


@click.command("list")
@click.option(
    "--kind",
    type=click.Choice([_DEAD_LETTERS, _DELIVERIES]),
    default=_DEAD_LETTERS,
    show_default=True,
    help="Dead letters, or webhook deliveries that exhausted their retries.",
)
@click.option("--origin", metavar="TOPIC", help="Only dead letters from this topic.")
@click.option(
    "--dismissed",
    "is_dismissed",
    is_flag=True,
    help="Only dismissed dead letters, which are hidden otherwise.",
)
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@json_option
def list_command(kind: str, origin: str | None, is_dismissed: bool, limit: int, as_json: bool) -> None:
    """List dead letters or exhausted deliveries, newest first."""
    if (origin is not None or is_dismissed) and kind != _DEAD_LETTERS:
        raise click.UsageError("--origin and --dismissed apply to dead letters only.")
    rows: Iterator[Mapping[str, Any]]
    with command_settings(uses_kafka=True) as settings, open_transaction(settings) as connection:
        if kind == _DEAD_LETTERS:
            rows = (
                _dead_letter_row(one, as_json)
                for one in _read_dead_letters(connection, settings.kafka, origin, limit, is_dismissed)
            )
        else:
            rows = map(_delivery_row, _read_deliveries(connection, settings.kafka, limit))
        listed = list(islice(rows, limit))
    empty = "There are no dead letters." if kind == _DEAD_LETTERS else "There are no exhausted deliveries."
    show_table(listed, kind, as_json=as_json, empty=empty)


def _read_dead_letters(
    connection: Connection[Any], kafka: KafkaSettings, origin: str | None, limit: int, is_dismissed: bool
) -> Iterator[DeadLetterView]:
    page = list_dead_letters(connection, kafka, None, limit, origin, is_dismissed=is_dismissed)
    yield from page.dead_letters
    while page.next_before is not None:
        page = list_dead_letters(
            connection, kafka, page.next_before, limit, origin, is_dismissed=is_dismissed
        )
        yield from page.dead_letters


def _read_deliveries(
    connection: Connection[Any], kafka: KafkaSettings, limit: int
) -> Iterator[ExhaustedDelivery]:
    page = list_exhausted(connection, kafka, None, limit)
    yield from page.deliveries
    while page.next_before is not None:
        page = list_exhausted(connection, kafka, page.next_before, limit)
        yield from page.deliveries


def _dead_letter_row(letter: DeadLetterView, as_json: bool) -> Mapping[str, Any]:
    shortened = letter.reason if as_json else letter.reason[:_MAX_REASON_WIDTH]
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
        "dismissed_at": timestamp(letter.dismissed.at) if letter.dismissed else None,
        "reason": shortened,
    }


def _delivery_row(delivery: ExhaustedDelivery) -> Mapping[str, Any]:
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


_DEAD_LETTER_ID_VERSION, _DELIVERY_ID_VERSION = 5, 7
"""The UUID versions by which the two kinds of ids are told apart."""


def parse_delivery_id(text: str) -> UUID | None:
    """Return None if the text is not a delivery's id; it may still name a dead letter."""
    named = parse_uuid(text)
    return named if named is not None and named.version == _DELIVERY_ID_VERSION else None


def find_by_id_or_offset(connection: Connection[Any], settings: KafkaSettings, text: str) -> DeadLetterView:
    named = parse_uuid(text)
    if named is not None and named.version == _DEAD_LETTER_ID_VERSION:
        return find_dead_letter(connection, settings, named)
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return get_dead_letter(connection, settings, int(text))
    raise click.ClickException("ID must be a dead letter's id or offset, or a delivery's id")


@click.command("show")
@click.argument("name", metavar="ID")
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show a dead letter with its record, or a delivery with its last response; secrets are removed."""
    with command_settings(uses_kafka=True) as settings, open_transaction(settings) as connection:
        delivery_id = parse_delivery_id(name)
        if delivery_id is None:
            letter = find_by_id_or_offset(connection, settings.kafka, name)
            _show_details(_dead_letter_details(letter), "value", letter.value, as_json)
        else:
            delivery = get_exhausted(connection, delivery_id)
            _show_details(_delivery_details(delivery), "last_answer", delivery.last_answer, as_json)


def _show_details(values: Mapping[str, Any], text_name: str, text: str | None, as_json: bool) -> None:
    """Print the values; for people, the long text comes last."""
    if as_json:
        show_values({**values, text_name: text}, as_json=True, note="")
    else:
        show_values(values, as_json=False, note=f"\n{text}" if text else "")


def _dead_letter_details(letter: DeadLetterView) -> Mapping[str, Any]:
    replayed, dismissed = letter.replayed, letter.dismissed
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
        "dismissed_at": timestamp(dismissed.at) if dismissed else None,
        "dismissed_by": dismissed.actor if dismissed else None,
        "dismissed_because": dismissed.reason if dismissed else None,
        "is_whole": letter.is_whole,
        "size": letter.size,
        "key": letter.key,
    }


def _delivery_details(delivery: ExhaustedDelivery) -> Mapping[str, Any]:
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

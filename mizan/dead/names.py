"""What an operator means by an ID."""

from typing import Any
from uuid import UUID

import click
from psycopg import Connection

from shared.domain.dead_letters.queries import DeadLetterView, find_dead_letter, get_dead_letter
from shared.platform.settings import KafkaSettings
from shared.platform.uuids import parse_uuid

_LETTER, _DELIVERY = 5, 7
"""The versions of their uuids."""


def delivery_named(text: str) -> UUID | None:
    """None: it names no delivery, but perhaps a letter."""
    named = parse_uuid(text)
    return named if named is not None and named.version == _DELIVERY else None


def letter_named(connection: Connection[Any], settings: KafkaSettings, text: str) -> DeadLetterView:
    named = parse_uuid(text)
    if named is not None and named.version == _LETTER:
        return find_dead_letter(connection, settings, named)
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return get_dead_letter(connection, settings, int(text))
    raise click.ClickException("ID must be a dead letter's id or offset, or a delivery's id")

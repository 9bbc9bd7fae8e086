"""Parses uuids, and reads the creation time of those of version 7."""

import re
from datetime import UTC, datetime
from uuid import UUID

_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def parse_uuid(text: str) -> UUID | None:
    """Return None unless the text is a uuid in the usual spelling with dashes."""
    return UUID(text) if _CANONICAL.fullmatch(text) else None


def uuid7_timestamp(text: str) -> float:
    """Return when it was created, in seconds since 1970. It takes text, because that is what hot paths have."""
    return int(text[:8] + text[9:13], 16) / 1000


def uuid7_datetime(uuid: UUID) -> datetime:
    return datetime.fromtimestamp(uuid7_timestamp(str(uuid)), UTC)

"""The time in a uuid of version 7: when it was made."""

import re
from datetime import UTC, datetime
from uuid import UUID


def made_at(text: str) -> float:
    """Seconds since 1970, to the millisecond. From its text, which is what hot paths have."""
    return int(text[:8] + text[9:13], 16) / 1000


def moment_of(made: UUID) -> datetime:
    return datetime.fromtimestamp(made_at(str(made)), UTC)


_USUAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def uuid_in(text: str) -> UUID | None:
    return UUID(text) if _USUAL.fullmatch(text) else None

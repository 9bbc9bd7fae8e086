"""Reads a uuid as people and programs usually spell it; Python's UUID also takes braces, prefixes and much else."""

import re
from uuid import UUID

_USUAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def uuid_in(text: str) -> UUID | None:
    return UUID(text) if _USUAL.fullmatch(text) else None

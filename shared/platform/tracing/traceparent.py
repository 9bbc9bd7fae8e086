"""A place in a trace, as W3C's `traceparent` writes it: how one is read, whoever wrote it, and written. Pure."""

import re
from typing import NamedTuple

HEADER = "traceparent"
# Anything else, a later version of it too, counts as none: a new trace begins.
_SANE = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")


class Place(NamedTuple):
    trace_id: int
    span_id: int
    flags: int


def sane(text: str | None) -> str | None:
    """The same text, if it is a traceparent."""
    return text if text is not None and _SANE.fullmatch(text) else None


def read(text: str) -> Place | None:
    found = _SANE.fullmatch(text)
    return None if found is None else Place(int(found[1], 16), int(found[2], 16), int(found[3], 16))


def write(place: Place) -> str:
    return f"00-{place.trace_id:032x}-{place.span_id:016x}-{place.flags:02x}"


def trace_id_of(traceparent: str) -> str:
    """What people search for."""
    return traceparent[3:35]

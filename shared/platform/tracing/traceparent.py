"""W3C `traceparent`: validates, parses and formats the text that names a position in a trace. Pure."""

import re
from typing import NamedTuple

HEADER = "traceparent"
# Anything else, a later version too, is ignored: a new trace starts.
_VALID = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")


class TraceContext(NamedTuple):
    trace_id: int
    span_id: int
    flags: int


def valid_traceparent(text: str | None) -> str | None:
    """Return the same text if it is a valid traceparent, else None."""
    return text if text is not None and _VALID.fullmatch(text) else None


def parse_traceparent(text: str) -> TraceContext | None:
    match = _VALID.fullmatch(text)
    return None if match is None else TraceContext(int(match[1], 16), int(match[2], 16), int(match[3], 16))


def format_traceparent(context: TraceContext) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.flags:02x}"


def trace_id_of(traceparent: str) -> str:
    """Return the trace id, which people search for."""
    return traceparent[3:35]

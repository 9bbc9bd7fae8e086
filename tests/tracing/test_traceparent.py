"""The W3C header traceparent is parsed strictly, because anybody may send one."""

import pytest

from shared.platform.tracing.traceparent import (
    format_traceparent,
    parse_traceparent,
    trace_id_of,
    valid_traceparent,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
SANE = f"00-{TRACE}-{SPAN}-01"

HOSTILE = [
    "",
    "00",
    f"00-{TRACE}-{SPAN}",
    f"00-{TRACE}-{SPAN}-01-more",
    f"00-{TRACE}-{SPAN}-01\n",
    f" {SANE}",
    f"{SANE},{SANE}",
    f"{SANE}, {SANE}",
    SANE * 1000,
    "0" * 100_000,
    SANE.upper(),
    f"ff-{TRACE}-{SPAN}-01",
    f"01-{TRACE}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE[:-1]}g-{SPAN}-01",
    f"00-{TRACE}-{SPAN}-1",
    f"00-{TRACE}-{SPAN}-٠١",
    "'; drop table payment_intents; --",
    "00-\x00-\x00-01",
]


@pytest.mark.parametrize("flags", ["00", "01", "03", "ff"])
def test_valid_traceparent_is_unchanged_by_parsing(flags: str) -> None:
    text = f"00-{TRACE}-{SPAN}-{flags}"
    place = parse_traceparent(text)
    assert place is not None
    assert format_traceparent(place) == valid_traceparent(text) == text
    assert trace_id_of(text) == TRACE


@pytest.mark.parametrize("text", HOSTILE)
def test_invalid_traceparent_counts_as_none(text: str) -> None:
    assert valid_traceparent(text) is None
    assert parse_traceparent(text) is None


def test_missing_traceparent_is_none() -> None:
    assert valid_traceparent(None) is None

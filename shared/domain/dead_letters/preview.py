"""Turns bytes of unknown origin into text for people: JSON is indented, secrets are removed, long text is cut."""

import json

from shared.platform.redaction import redact, redact_text
from shared.platform.sanitize import sanitize_text
from shared.platform.strict_json import InvalidJsonError, parse_json

TEXT_LIMIT = 16 * 1024
_READ_LIMIT = 4 * TEXT_LIMIT
"""Only so much of a longer value is read: searching megabytes for secrets takes seconds."""
_LONGEST_SECRET = 2 * 1024
_CUT = "\n… cut here"


def preview_text(value: bytes, limit: int = TEXT_LIMIT) -> str:
    """Return the text; if it was cut, its last line says so."""
    if len(value) <= _READ_LIMIT:
        shown = _json(value) or redact_text(value.decode("utf-8", "replace"))
        is_cut = False
    else:
        # A secret that is cut in two is not recognised, so the end that may hold one is removed.
        shown = redact_text(value[:_READ_LIMIT].decode("utf-8", "replace"))[:-_LONGEST_SECRET]
        is_cut = True
    shown = sanitize_text(shown)
    return shown[:limit] + _CUT if is_cut or len(shown) > limit else shown


def preview_line(text: str | bytes, limit: int) -> str:
    """Return the text in one line."""
    whole = text if isinstance(text, str) else text[:_READ_LIMIT].decode("utf-8", "replace")
    shown = " ".join(sanitize_text(redact_text(whole[:_READ_LIMIT])).split())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _json(value: bytes) -> str | None:
    try:
        parsed = parse_json(value)
    except InvalidJsonError:
        return None
    is_structure = isinstance(parsed, dict | list)
    return json.dumps(redact(parsed), indent=2, ensure_ascii=False) if is_structure else None

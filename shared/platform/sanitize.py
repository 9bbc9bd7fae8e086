"""Makes foreign text safe to show on a page or in a terminal: control and invisible characters become visible. Pure."""

import re

# Control characters except tab and line feed, invisible characters, and those that change the text direction.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_PICTURES = 0x2400
"""Where Unicode has a symbol for each control character."""


def sanitize_text(text: str | bytes) -> str:
    """Replace harmful characters by visible ones, and bytes that are not UTF-8 by replacement characters."""
    decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return _UNSAFE.sub(_make_visible, decoded.replace("\r\n", "\n"))


def _make_visible(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x20:
        return chr(_PICTURES + number)
    return "\u2421" if number == 0x7F else f"\\u{number:04x}"

"""Text of others that is safe to look at, on a page or in a terminal: what would act or hide is made visible. Pure."""

import re

# Control characters, but for tab and line feed; what is not seen; what turns the direction of writing.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_PICTURES = 0x2400
"""Here Unicode has a picture of each control character."""


def harmless(text: str | bytes) -> str:
    """Bytes that are no UTF-8 become replacement characters."""
    decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return _HARMFUL.sub(_made_visible, decoded.replace("\r\n", "\n"))


def _made_visible(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x20:
        return chr(_PICTURES + number)
    return "\u2421" if number == 0x7F else f"\\u{number:04x}"

"""Digits as people type and paste them: Arabic-Indic ones, with spaces, dashes and invisible marks between. Pure."""

import unicodedata

_BETWEEN = frozenset("-‐‑‒–—−./\u00ad")  # noqa: RUF001  dashes that look alike


def digits_in(text: str, *, also: str = "") -> str | None:
    """The digits alone, as 0 to 9, and the characters of `also`; None when anything else was typed."""
    kept = []
    for character in text:
        if character in also:
            kept.append(character)
        elif character.isdecimal():
            kept.append(str(unicodedata.decimal(character)))
        elif not (character in _BETWEEN or character.isspace() or unicodedata.category(character) == "Cf"):
            return None
    return "".join(kept)

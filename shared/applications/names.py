"""What merchants and applications may be called."""

import unicodedata

from shared.applications.errors import NameNotAllowedError

MAX_LENGTH = 200
# Control characters, lone surrogates, line and paragraph separators. Joiners and direction marks, which Arabic
# names need, are in none of these.
_NOT_IN_A_NAME = {"Cc", "Cs", "Zl", "Zp"}


def check_name(text: str, of: str) -> str:
    """The name without spaces around it, or a word on what is wrong with it; `of` says whose it is."""
    name = text.strip()
    if not 1 <= len(name) <= MAX_LENGTH:
        raise NameNotAllowedError(f"the {of}'s name must have 1 to {MAX_LENGTH} characters, not {len(name)}")
    stray = next((c for c in name if unicodedata.category(c) in _NOT_IN_A_NAME), None)
    if stray is not None:
        raise NameNotAllowedError(f"the {of}'s name must not have the character {stray!a}")
    return name

"""Notes that operators write about a payment: their reason, what they did, the provider's reference. Pure."""

import unicodedata

from shared.platform.errors import RefusedError
from shared.platform.redaction import redact_text

MIN_NOTE_LENGTH = 5
MAX_NOTE_LENGTH = 500
MAX_REFERENCE_LENGTH = 255
# Control characters, lone surrogates, line and paragraph separators: databases and pages may not accept them.
_DISALLOWED_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}


class InvalidNoteError(RefusedError):
    def __init__(self, name: str) -> None:
        super().__init__(f"the {name} must have {MIN_NOTE_LENGTH} to {MAX_NOTE_LENGTH} characters")


class InvalidReferenceError(RefusedError):
    def __init__(self) -> None:
        super().__init__(
            f"the reference must be the provider's reference of the payment, with at most {MAX_REFERENCE_LENGTH} "
            "characters, not a card or phone number"
        )


def clean_note(text: str, name: str = "reason") -> str:
    """Return the note in one line, with card numbers, codes and phone numbers redacted.

    Raises InvalidNoteError, which calls the field `name`, if it is too short or too long.
    """
    line = _in_one_line(text)
    if len(line) > MAX_NOTE_LENGTH or _visible_length(line) < MIN_NOTE_LENGTH:
        raise InvalidNoteError(name)
    return redact_text(line)


def clean_reference(text: str) -> str | None:
    """Return the reference in one line, or None if it is empty. Raises InvalidReferenceError."""
    line = _in_one_line(text)
    if len(line) > MAX_REFERENCE_LENGTH or redact_text(line) != line:
        raise InvalidReferenceError
    return line or None


def _visible_length(line: str) -> int:
    """Return the number of visible characters: direction marks and joiners do not count."""
    return sum(unicodedata.category(one) != "Cf" for one in line)


def _in_one_line(text: str) -> str:
    plain = "".join(" " if unicodedata.category(one) in _DISALLOWED_CATEGORIES else one for one in text)
    return " ".join(plain.split())

"""What operators write about a payment for whoever looks at it later: their reason, what they did. Pure."""

import unicodedata

from shared.platform.errors import RefusedError
from shared.platform.redaction import redact_text

MIN_NOTE_LENGTH = 5
MAX_NOTE_LENGTH = 500
MAX_REFERENCE_LENGTH = 255
# Control characters, lone surrogates, line and paragraph separators: a database or a page may not take them.
_NOT_IN_TEXT = {"Cc", "Cs", "Zl", "Zp"}


class InvalidNoteError(RefusedError):
    def __init__(self, name: str) -> None:
        super().__init__(f"the {name} must have {MIN_NOTE_LENGTH} to {MAX_NOTE_LENGTH} characters")


class InvalidReferenceError(RefusedError):
    def __init__(self) -> None:
        super().__init__(
            f"the reference must be the provider's own name for the payment, of at most {MAX_REFERENCE_LENGTH} "
            "characters, and no card or phone number"
        )


def clean_note(text: str, name: str = "reason") -> str:
    """In one line; a card number, a code or a phone number that somebody pasted into it is taken out."""
    line = _in_one_line(text)
    if len(line) > MAX_NOTE_LENGTH or _seen_in(line) < MIN_NOTE_LENGTH:
        raise InvalidNoteError(name)
    return redact_text(line)


def clean_reference(text: str) -> str | None:
    """None where nothing was given."""
    line = _in_one_line(text)
    if len(line) > MAX_REFERENCE_LENGTH or redact_text(line) != line:
        raise InvalidReferenceError
    return line or None


def _seen_in(line: str) -> int:
    """How many characters of it a reader sees, or could: marks of direction and joiners are none."""
    return sum(unicodedata.category(one) != "Cf" for one in line)


def _in_one_line(text: str) -> str:
    plain = "".join(" " if unicodedata.category(one) in _NOT_IN_TEXT else one for one in text)
    return " ".join(plain.split())

"""Which passwords may be chosen: long enough, not a common one, and without the email address or the product's name."""

import unicodedata
from enum import Enum, auto

MIN_LENGTH = 12
MAX_LENGTH = 200
_MIN_DISTINCT_CHARACTERS = 5
_MIN_FORBIDDEN_NAME_LENGTH = 4
_PRODUCT_NAMES = ("mizan", "ميزان")
# Below this, zxcvbn calls a password "very guessable": a common one with some digits, in other letters, or repeated.
_MIN_SCORE = 2
# Estimating the guesses takes 30 ms for 40 characters, and grows with the square of the length.
_MAX_ESTIMATED_LENGTH = 40


class PasswordFlaw(Enum):
    LENGTH = auto()
    PERSONAL = auto()
    """It contains the email address, the name in it, or the product's name."""
    COMMON = auto()
    """Many people use it or one like it, or it has very few different characters."""


class PasswordNotAllowedError(Exception):
    """The password must not be chosen; `flaw` says why."""

    def __init__(self, flaw: PasswordFlaw) -> None:
        super().__init__(flaw.name.lower())
        self.flaw = flaw


def check_password(text: str, email: str) -> str:
    """Return the password if the owner of this email address may choose it. Raises PasswordNotAllowedError."""
    flaw = _find_flaw(text, email)
    if flaw is not None:
        raise PasswordNotAllowedError(flaw)
    return text


def _find_flaw(text: str, email: str) -> PasswordFlaw | None:
    if not MIN_LENGTH <= len(text) <= MAX_LENGTH:
        return PasswordFlaw.LENGTH
    simplified = _simplify(text)
    name = _simplify(email).partition("@")[0]
    forbidden = name if len(name) >= _MIN_FORBIDDEN_NAME_LENGTH else _simplify(email)
    if any(word in simplified for word in (forbidden, *_PRODUCT_NAMES)):
        return PasswordFlaw.PERSONAL
    return PasswordFlaw.COMMON if _is_common(simplified) else None


def _is_common(simplified: str) -> bool:
    # Imported only when somebody chooses a password: its lists take 13 MB and 45 ms.
    from zxcvbn import zxcvbn  # noqa: PLC0415
    from zxcvbn.frequency_lists import FREQUENCY_LISTS  # noqa: PLC0415

    # The 30,000 most common ones. Most are shorter than MIN_LENGTH, so the rare ones at the end matter too.
    if simplified in FREQUENCY_LISTS["passwords"] or len(set(simplified)) < _MIN_DISTINCT_CHARACTERS:
        return True
    if len(simplified) > _MAX_ESTIMATED_LENGTH:
        return False
    return bool(zxcvbn(simplified)["score"] < _MIN_SCORE)


def _simplify(text: str) -> str:
    """Return the text in lower case, without spaces around it and with plain forms of full-width letters."""
    return unicodedata.normalize("NFKC", text).casefold().strip()

"""The names of an application that customers see at the checkout, one for each language.

Without one, they see the name of the merchant. A name is what its merchant wants strangers to read, so it is checked:
nothing in it may be invisible, end the line, or change the direction of the text around it.
"""

import unicodedata
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.applications.errors import ApplicationNotFoundError, InvalidPublicNameError

MAX_LENGTH = 60
_MAX_MARKS = 4
"""How many combining marks may follow each other: an Arabic letter has at most three."""
# Zero width joiner and non-joiner, which some names in Arabic script and some emoji need.
_JOINERS = {"\u200c", "\u200d"}
# Control and format characters (with all that change the direction), surrogates, characters without a meaning to
# others, line and paragraph separators.
_REFUSED_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

_FIND = "select public_name_ar, public_name_en from applications where id = %s for no key update"
_SET = "update applications set public_name_ar = %s, public_name_en = %s where id = %s"


@dataclass(frozen=True, slots=True)
class PublicNames:
    """None means that customers see the name of the merchant in this language."""

    ar: str | None = None
    en: str | None = None


def check_public_name(text: str) -> str | None:
    """Return the name with single spaces, or None if it is empty. Raises InvalidPublicNameError."""
    name = unicodedata.normalize("NFC", text).strip()
    if not name:
        return None
    if len(name) > MAX_LENGTH:
        raise InvalidPublicNameError(f"a public name must have at most {MAX_LENGTH} characters")
    stray = next((character for character in name if _is_refused(character)), None)
    if stray is not None:
        raise InvalidPublicNameError(f"a public name must not have the character {stray!a}")
    if not any(character.isalnum() for character in name) or _has_stacked_marks(name):
        raise InvalidPublicNameError("a public name must have letters or digits that people can read")
    return " ".join(name.split())


def set_public_names(
    connection: Connection[Any], application_id: UUID, names: PublicNames
) -> PublicNames | None:
    """Set the names. Return the previous ones if they differ, else None.

    The caller has checked the names. Raises ApplicationNotFoundError.
    """
    row = connection.execute(_FIND, (application_id,)).fetchone()
    if row is None:
        raise ApplicationNotFoundError(application_id)
    before = PublicNames(*row)
    if before == names:
        return None
    connection.execute(_SET, (names.ar, names.en, application_id))
    return before


def _is_refused(character: str) -> bool:
    return unicodedata.category(character) in _REFUSED_CATEGORIES and character not in _JOINERS


def _has_stacked_marks(name: str) -> bool:
    run = 0
    for character in name:
        run = run + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if run > _MAX_MARKS:
            return True
    return False

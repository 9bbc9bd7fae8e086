"""What somebody searches for: the spellings to look up in an index, a pattern for parts of words, an amount. Pure.

Upper and lower case are the same, and so are Latin and Arabic digits, the forms of alef, and Arabic text with or
without short vowels.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from uuid import UUID

from shared.platform.uuids import parse_uuid

MAX_SEARCH = 255
_SURROGATES = range(0xD800, 0xE000)
_MINOR_UNITS = 1000
_SAME = (
    *(f"{digit}{chr(0x660 + digit)}{chr(0x6F0 + digit)}" for digit in range(10)),
    "\u0627\u0623\u0625\u0622\u0671",  # alef, with and without hamza or madda
    "\u064a\u0649\u06cc",  # ya and alef maqsura
    "\u0629\u0647",  # ta marbuta and ha
    "\u0643\u06a9",  # kaf
)
_SAME_AS = {character: group for group in _SAME for character in group}
_TO_LATIN = {ord(character): group[0] for group in _SAME[:10] for character in group}
_TO_ARABIC = {ord(character): group[1] for group in _SAME[:10] for character in group}
_VOWELS = "\u0640\u064b-\u0652\u0670"
_VOWEL = re.compile(f"[{_VOWELS}]")
_ARABIC_LETTER = re.compile("[\u0620-\u063f\u0641-\u064a\u0671-\u06d3]")
# They come along when text is copied from a page, and nobody sees them.
_INVISIBLE = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_AMOUNT = re.compile(
    r"(?:LYD)?\s*(?P<dinars>\d{1,3}(?:,\d{3})+|\d{1,9})(?:[.,](?P<dirhams>\d{1,3}))?\s*(?:LYD|د\.?\s?ل\.?)?",
    re.IGNORECASE,
)
_AMOUNT_SIGNS = str.maketrans({"\u066b": ".", "\u066c": ",", "\u00a0": " "})


@dataclass(frozen=True)
class SearchText:
    """A text to search for. It is not empty and can be stored in PostgreSQL: see `is_searchable`."""

    given: str

    @cached_property
    def text(self) -> str:
        """Without what nobody sees."""
        return _INVISIBLE.sub("", self.given).strip() or self.given

    @cached_property
    def uuid(self) -> UUID | None:
        return parse_uuid(self.text)

    @cached_property
    def reference(self) -> str:
        """As our own references are spelled."""
        return re.sub(r"[\s-]", "", self.text.translate(_TO_LATIN)).lower()

    @cached_property
    def spellings(self) -> list[str]:
        """Return the usual spellings of a merchant's reference: small, capital or one capital letter; both digits."""
        text = self.text
        cased = (text, text.lower(), text.upper(), text.capitalize())
        digits = [each.translate(table) for table in ({}, _TO_LATIN, _TO_ARABIC) for each in cased]
        return list(dict.fromkeys([self.given, *digits]))

    @cached_property
    def amount(self) -> int | None:
        """The amount in minor units, if the text can be one."""
        found = _AMOUNT.fullmatch(self.text.translate(_TO_LATIN).translate(_AMOUNT_SIGNS).strip())
        if found is None:
            return None
        dinars = found["dinars"].replace(",", "")
        return int(Decimal(f"{dinars}.{found['dirhams'] or 0}") * _MINOR_UNITS)

    @cached_property
    def pattern(self) -> str:
        """A regular expression of PostgreSQL that finds the text anywhere.

        Every character is written by its number, so none of them can mean anything else.
        """
        words = (_VOWEL.sub("", self.text) or self.text).split() or [self.text]
        return r"\s+".join("".join(map(_one_of, word)) for word in words)


def is_searchable(text: str) -> bool:
    """Return whether PostgreSQL can store the text."""
    return "\0" not in text and not any(ord(character) in _SURROGATES for character in text)


def _one_of(character: str) -> str:
    """Return an expression for all characters that count as this one, and the short vowels that may follow."""
    cased = (character, character.lower(), character.upper(), character.casefold())
    same = dict.fromkeys(each for each in (*_SAME_AS.get(character, ""), *cased) if len(each) == 1)
    vowels = f"[{_VOWELS}]*" if _ARABIC_LETTER.match(character) else ""
    numbers = "".join(rf"\U{ord(each):08x}" for each in same)
    return f"[{numbers}]{vowels}"

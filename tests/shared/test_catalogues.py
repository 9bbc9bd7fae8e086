"""The translations of each service are complete, current and compiled."""

import re
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

PROJECT = Path(__file__).parent.parent.parent
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2")]

pytestmark = pytest.mark.parametrize(
    "service", ["services/checkout", "services/dashboard", "services/monitor", "shared/console"]
)


def _path(service: str, lang: str) -> Path:
    return PROJECT / service / "translations" / lang / "LC_MESSAGES"


def _catalogue(service: str, lang: str) -> Catalog:
    return read_po(BytesIO((_path(service, lang) / "messages.po").read_bytes()), lang)


@cache
def _words(service: str) -> set[str | tuple[str, ...]]:
    keywords = {**DEFAULT_KEYWORDS, "lazy_gettext": None}
    found = extract_from_dir(PROJECT / service, METHODS, keywords=keywords)
    return {tuple(word) if isinstance(word, list | tuple) else word for _, _, word, _, _ in found}


@pytest.mark.parametrize("lang", ["ar", "en"])
class TestCatalogue:
    def test_every_text_is_translated(self, service: str, lang: str) -> None:
        """And the catalogue has no text that is no longer used."""
        catalogue = _catalogue(service, lang)
        known = {message.id: message for message in catalogue if message.id}
        assert {tuple(word) if isinstance(word, list | tuple) else word for word in known} == _words(service)
        for message in known.values():
            strings = message.string if isinstance(message.string, list | tuple) else [message.string]
            assert all(strings), message.id
            assert not message.fuzzy, message.id

    def test_placeholders_match_the_original(self, service: str, lang: str) -> None:
        for message in _catalogue(service, lang):
            assert not list(message.check()), message.id

    def test_compiled_catalogue_is_current(self, service: str, lang: str) -> None:
        """Run `make catalogues` otherwise."""
        compiled = BytesIO()
        write_mo(compiled, _catalogue(service, lang))
        assert (_path(service, lang) / "messages.mo").read_bytes() == compiled.getvalue()


def test_english_texts_equal_the_code(service: str) -> None:
    for message in _catalogue(service, "en"):
        if message.id:
            assert message.string == message.id


def test_arabic_texts_have_arabic_letters(service: str) -> None:
    for message in _catalogue(service, "ar"):
        texts = message.string if isinstance(message.string, list | tuple) else [message.string]
        for text in texts:
            assert not message.id or any("\u0600" <= character <= "\u06ff" for character in str(text)), text


_LATIN_MARK = re.compile(r"[\u0600-\u06ff\u200e\u200f][»)\]]?[,;?]|[,;?]\s+[«(\[]?[\u0600-\u06ff]")


def test_arabic_texts_have_arabic_punctuation(service: str) -> None:
    """Between Arabic words, ، ؛ and ؟ stand instead of the Latin marks."""
    for message in _catalogue(service, "ar"):
        texts = message.string if isinstance(message.string, list | tuple) else [message.string]
        for text in texts:
            assert not message.id or not _LATIN_MARK.search(str(text)), text

"""Both languages of each service's pages are complete, and what the pages read is what was translated."""

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


def _words(service: str) -> set[str | tuple[str, ...]]:
    keywords = {**DEFAULT_KEYWORDS, "lazy_gettext": None}
    found = extract_from_dir(PROJECT / service, METHODS, keywords=keywords)
    return {tuple(word) if isinstance(word, list | tuple) else word for _, _, word, _, _ in found}


@pytest.mark.parametrize("lang", ["ar", "en"])
class TestCatalogue:
    def test_every_word_is_translated(self, service: str, lang: str) -> None:
        """And nothing is left that no page says any more."""
        catalogue = _catalogue(service, lang)
        known = {message.id: message for message in catalogue if message.id}
        assert {tuple(word) if isinstance(word, list | tuple) else word for word in known} == _words(service)
        for message in known.values():
            strings = message.string if isinstance(message.string, list | tuple) else [message.string]
            assert all(strings), message.id
            assert not message.fuzzy, message.id

    def test_what_is_filled_in_is_there(self, service: str, lang: str) -> None:
        for message in _catalogue(service, lang):
            assert not list(message.check()), message.id

    def test_the_compiled_one_is_the_same(self, service: str, lang: str) -> None:
        """`make catalogues` was not forgotten."""
        compiled = BytesIO()
        write_mo(compiled, _catalogue(service, lang))
        assert (_path(service, lang) / "messages.mo").read_bytes() == compiled.getvalue()


def test_english_says_what_the_code_says(service: str) -> None:
    for message in _catalogue(service, "en"):
        if message.id:
            assert message.string == message.id


def test_arabic_is_arabic(service: str) -> None:
    """But for names that are written alike everywhere."""
    for message in _catalogue(service, "ar"):
        texts = message.string if isinstance(message.string, list | tuple) else [message.string]
        for text in texts:
            assert not message.id or any("\u0600" <= character <= "\u06ff" for character in str(text)), text

"""The texts of a service's pages in each language, read from the message catalogues that the pages use."""

from functools import cached_property
from gettext import GNUTranslations
from importlib.resources import files

LANGUAGES = ("ar", "en")
DIRECTIONS = {"ar": "rtl", "en": "ltr"}


class Catalogue:
    def __init__(self, *packages: str) -> None:
        """`packages` are searched in order."""
        self._packages = packages

    def say(self, lang: str, text: str, **values: str) -> str:
        said = self._of[lang].gettext(text)
        assert lang == "en" or said != text, f"the catalogue of {lang} does not have {text!r}"
        return said % values if values else said

    @cached_property
    def _of(self) -> dict[str, GNUTranslations]:
        return {lang: self._read(lang) for lang in ("ar", "en")}

    def _read(self, lang: str) -> GNUTranslations:
        first, *others = [_compiled(package, lang) for package in self._packages]
        for other in others:
            first.add_fallback(other)
        return first


def _compiled(package: str, lang: str) -> GNUTranslations:
    compiled = files(package) / "translations" / lang / "LC_MESSAGES" / "messages.mo"
    with compiled.open("rb") as file:
        return GNUTranslations(file)

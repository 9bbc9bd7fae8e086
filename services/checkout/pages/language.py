"""Languages of the pages: Arabic, or English if the URL has lang=en. All links keep the language."""

from pathlib import Path
from typing import Any

from babel.support import Translations
from flask import Flask, request, url_for
from flask_babel import Babel

from shared.platform.web.languages import DEFAULT, LANGUAGES


def current_language() -> str:
    requested = request.args.get("lang", DEFAULT)
    return requested if requested in LANGUAGES else DEFAULT


def other_language() -> str:
    """Return the language that the current page offers to change to."""
    return "en" if current_language() == DEFAULT else DEFAULT


def page_url(endpoint: str, lang: str | None = None, **values: Any) -> str:
    """Return the URL of an endpoint in `lang`, or in the language of the current request."""
    language = lang or current_language()
    if language != DEFAULT:
        values["lang"] = language
    return url_for(endpoint, **values)


def register_languages(app: Flask) -> None:
    Babel(app, default_locale=DEFAULT, locale_selector=current_language)
    _translate_templates(app)

    @app.context_processor
    def language_variables() -> dict[str, str | None]:
        lang = current_language()
        url = _same_page_in(other_language())
        return {"lang": lang, "direction": LANGUAGES[lang], "other_language_url": url}


def _translate_templates(app: Flask) -> None:
    """Look the templates' texts up directly. Flask-Babel finds the catalogue again for each text, a tenth of a page."""
    catalogues = {lang: Translations.load(Path(app.root_path) / "translations", [lang]) for lang in LANGUAGES}

    def translate(text: str) -> str:
        return str(catalogues[current_language()].ugettext(text))

    def translate_count(one: str, many: str, count: int) -> str:
        return str(catalogues[current_language()].ungettext(one, many, count))

    app.jinja_env.install_gettext_callables(translate, translate_count, newstyle=True)  # type: ignore[attr-defined]


def _same_page_in(lang: str) -> str | None:
    """Return the URL of the current page in `lang`, or None if the page shows no intent."""
    endpoint = request.endpoint
    if endpoint is None or request.view_args is None:
        return None
    if not endpoint.startswith("pages."):
        return None
    return page_url("pages.show", lang, intent=request.view_args["intent"])

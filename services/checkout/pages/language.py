"""Arabic unless the address says lang=en, through the whole checkout."""

from typing import Any

from flask import Flask, request, url_for
from flask_babel import Babel

from shared.platform.web.languages import DEFAULT, LANGUAGES


def current_language() -> str:
    asked = request.args.get("lang", DEFAULT)
    return asked if asked in LANGUAGES else DEFAULT


def page_url(endpoint: str, lang: str | None = None, **values: Any) -> str:
    """An address of ours, in this language, or in that of this request."""
    spoken = lang or current_language()
    if spoken != DEFAULT:
        values["lang"] = spoken
    return url_for(endpoint, **values)


def register_languages(app: Flask) -> None:
    Babel(app, default_locale=DEFAULT, locale_selector=current_language)

    @app.context_processor
    def language() -> dict[str, str | None]:
        lang = current_language()
        other = "en" if lang == DEFAULT else DEFAULT
        return {"lang": lang, "direction": LANGUAGES[lang], "other_language_url": _same_page_in(other)}


def _same_page_in(lang: str) -> str | None:
    """None where there is no intent to show."""
    endpoint = request.endpoint
    if endpoint is None or request.view_args is None:
        return None
    if not endpoint.startswith("pages."):
        return None
    return page_url("pages.show", lang, intent=request.view_args["intent"])

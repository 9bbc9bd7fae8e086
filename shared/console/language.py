"""The language of a page: what the person chose, or else what their browser prefers, or else Arabic."""

from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

from babel.dates import format_datetime
from flask import Flask, request, session, url_for
from flask_babel import Babel, get_locale

from shared.platform.web.languages import DEFAULT, LANGUAGES, LIBYA, format_amount

_TRANSLATIONS = Path(__file__).parent / "translations"
_MOMENT = {"ar": "d MMM y، HH:mm:ss", "en": "d MMM y, HH:mm:ss"}


def current_language() -> str:
    asked = request.args.get("lang")
    if asked in LANGUAGES:
        return asked
    chosen = session.get("lang")
    if chosen in LANGUAGES:
        return str(chosen)
    # Werkzeug's own choice would prefer "en" to "ar-LY", because it is an exact match.
    preferred = (tag.partition("-")[0].lower() for tag in request.accept_languages.values())
    return next((tag for tag in preferred if tag in LANGUAGES), DEFAULT)


def moment(at: datetime) -> str:
    """Return the date and time to the second, in Libya's time zone."""
    lang = current_language()
    return format_datetime(at.astimezone(LIBYA), _MOMENT[lang], locale=lang)


def list_separator() -> str:
    """Return the comma between the items of a list, with its space, in the language of the page or mail."""
    locale = get_locale()
    return "، " if locale is not None and locale.language == "ar" else ", "


def amount(minor: int, currency: str = "LYD") -> str:
    return format_amount(minor, currency, current_language())


def register_languages(app: Flask, home: str) -> None:
    """Translate pages, and give templates the filters `moment` and `amount`. `home` is the first page's endpoint."""
    Babel(
        app,
        default_locale=DEFAULT,
        default_translation_directories=f"translations;{_TRANSLATIONS}",
        locale_selector=current_language,
    )
    app.jinja_env.filters["moment"] = moment
    app.jinja_env.filters["amount"] = amount
    app.jinja_env.globals["list_separator"] = list_separator

    @app.before_request
    def remember_choice() -> None:
        asked = request.args.get("lang")
        if asked in LANGUAGES and session.get("lang") != asked:
            session["lang"] = asked

    @app.context_processor
    def language() -> dict[str, str]:
        lang = current_language()
        other = "en" if lang == DEFAULT else DEFAULT
        return {"lang": lang, "direction": LANGUAGES[lang], "other_language_url": _same_page_in(other, home)}


def _same_page_in(lang: str, home: str) -> str:
    if request.method != "GET" or request.endpoint is None or request.routing_exception is not None:
        return url_for(home, lang=lang)
    # Not url_for: the guard has replaced ids in `view_args` by objects.
    query = [(name, value) for name, value in request.args.items(multi=True) if name != "lang"]
    return f"{request.path}?{urlencode([*query, ('lang', lang)])}"

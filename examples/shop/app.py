"""Puts the shop together."""

import sqlite3
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import urlencode

from flask import Flask, Response, g, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_wtf.csrf import CSRFError, CSRFProtect
from werkzeug.exceptions import HTTPException

from examples.shop import words
from examples.shop.backstage import Backstage, backstage_blueprint
from examples.shop.credentials import NoCredentialsError, read_credentials
from examples.shop.database import Database
from examples.shop.endpoint import Endpoint
from examples.shop.language import current_language, speak
from examples.shop.mizan_api import MizanApi
from examples.shop.pages import Counter, shop_blueprint
from examples.shop.paying import Till
from examples.shop.settings import Settings
from examples.shop.settling import Books
from examples.shop.signatures import add_secret
from examples.shop.webhooks import Receiver, webhooks_blueprint
from examples.shop.worker import Worker

_TRIPOLI = timezone(timedelta(hours=2))
_MOST_BYTES_OF_A_FORM = 65_536
# No form-action: the order's form is answered with a redirect to the checkout, which is another site, and browsers that
# apply it to redirects would stop there.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Shop:
    app: Flask
    worker: Worker
    endpoint: Endpoint


def make_shop(settings: Settings) -> Shop:
    database = Database(settings.database)
    api = MizanApi(settings.mizan_url, settings.credentials_file)
    till, books = Till(database, api, settings.public_url), Books(database, api)
    worker, endpoint = Worker(database, till, books), Endpoint(database)
    with database.transaction() as connection:
        add_secret(connection, read_credentials(settings.credentials_file).webhook_secret, time.time())

    app = Flask(__name__)
    app.config.update(
        SECRET_KEY=database.secret_key(),
        # A name of its own: browsers give the cookies of one port to all others of a machine.
        SESSION_COOKIE_NAME="shop-session",
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.is_https,
        MAX_CONTENT_LENGTH=_MOST_BYTES_OF_A_FORM,
        WTF_CSRF_TIME_LIMIT=None,
        WTF_CSRF_SSL_STRICT=False,
    )
    csrf = CSRFProtect(app)
    receiver = Receiver(database, settings.credentials_file, endpoint, worker.wake)
    webhooks = webhooks_blueprint(receiver)
    # Signed by Mizan, which has no page of ours to take a token from.
    csrf.exempt(webhooks)
    app.register_blueprint(webhooks)
    app.register_blueprint(shop_blueprint(Counter(database, till, books)))
    app.register_blueprint(backstage_blueprint(Backstage(settings, database, endpoint)))
    speak(app, is_https=settings.is_https)
    _dress(app, settings)
    _answer_troubles(app)
    _answer_readiness(app, database, settings.credentials_file)
    return Shop(app, worker, endpoint)


def _dress(app: Flask, settings: Settings) -> None:
    """What every template can say."""

    @app.after_request
    def add_headers(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.context_processor
    def speech() -> dict[str, object]:
        lang = getattr(g, "lang", None) or current_language()
        other = "en" if lang == "ar" else "ar"
        return {
            "lang": lang,
            "direction": "rtl" if lang == "ar" else "ltr",
            "other_lang": other,
            "other_lang_url": f"{request.path}?{urlencode({**request.args.to_dict(), 'lang': other})}",
            "say": lambda key, **values: words.say(key, lang, **values),
            "product_name": lambda code: words.product(code, lang),
            "about_product": lambda code: words.about_product(code, lang),
            "money": lambda amount: words.money(amount, lang),
            "has_backstage": settings.has_backstage,
        }

    app.add_template_filter(_iso, "iso")
    app.add_template_filter(_clock, "clock")
    app.add_template_filter(_day_and_clock, "day_and_clock")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, _TRIPOLI).strftime("%H:%M:%S")


def _day_and_clock(at: float) -> str:
    return datetime.fromtimestamp(at, _TRIPOLI).strftime("%d.%m. %H:%M:%S")


def _answer_troubles(app: Flask) -> None:
    @app.errorhandler(CSRFError)
    def forged(_error: CSRFError) -> ResponseReturnValue:
        return render_template("trouble.html", trouble="form"), 400

    @app.errorhandler(HTTPException)
    def trouble(error: HTTPException) -> ResponseReturnValue:
        status = error.code or 500
        return render_template("trouble.html", trouble="not_found" if status < 500 else "error"), status


def _answer_readiness(app: Flask, database: Database, credentials_file: Path) -> None:
    @app.get("/readyz")
    def readyz() -> ResponseReturnValue:
        try:
            database.check()
            read_credentials(credentials_file)
        except (OSError, sqlite3.Error, NoCredentialsError) as error:
            return {"ready": False, "why": str(error)}, 503
        return {"ready": True}

    @app.get("/favicon.ico")
    def favicon() -> ResponseReturnValue:
        return app.redirect(url_for("static", filename="mark.svg"))

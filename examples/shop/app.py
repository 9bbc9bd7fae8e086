"""Creates the Flask application of the shop and its worker."""

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

from . import texts
from .admin import AdminPages, admin_blueprint
from .checkout import Checkout
from .database import Database
from .endpoint_debug import EndpointSwitch
from .mizan_api import MizanApi
from .pages import ShopPages, shop_blueprint
from .settings import CredentialsError, Settings, read_credentials
from .settlement import Settlement
from .texts import current_language, register_language
from .webhook_inbox import add_secret
from .webhooks import WebhookEndpoint, webhooks_blueprint
from .worker import Worker

_TRIPOLI = timezone(timedelta(hours=2))
_MAX_FORM_BYTES = 65_536
# No form-action: the order form redirects to the checkout, which is another site, and some browsers apply form-action
# to redirects.
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
    endpoint_switch: EndpointSwitch


def create_shop(settings: Settings) -> Shop:
    database = Database(settings.database)
    api = MizanApi(settings.mizan_url, settings.credentials_file)
    checkout, settlement = Checkout(database, api, settings.public_url), Settlement(database, api)
    worker, endpoint_switch = Worker(database, checkout, settlement), EndpointSwitch(database)
    with database.transaction() as connection:
        add_secret(connection, read_credentials(settings.credentials_file).webhook_secret, time.time())

    app = Flask(__name__)
    app.config.update(
        SECRET_KEY=database.secret_key(),
        # Browsers share cookies between all ports of a machine, so the name must be unique.
        SESSION_COOKIE_NAME="shop-session",
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.is_https,
        MAX_CONTENT_LENGTH=_MAX_FORM_BYTES,
        WTF_CSRF_TIME_LIMIT=None,
        WTF_CSRF_SSL_STRICT=False,
    )
    csrf = CSRFProtect(app)
    webhooks = webhooks_blueprint(
        WebhookEndpoint(database, settings.credentials_file, endpoint_switch, worker.wake)
    )
    # Webhooks are signed by Mizan and cannot carry a CSRF token.
    csrf.exempt(webhooks)
    app.register_blueprint(webhooks)
    app.register_blueprint(shop_blueprint(ShopPages(database, checkout, settlement)))
    app.register_blueprint(admin_blueprint(AdminPages(settings, database, endpoint_switch)))
    register_language(app, is_https=settings.is_https)
    _register_template_helpers(app, settings)
    _register_error_pages(app)
    _register_operations(app, database, settings.credentials_file)
    return Shop(app, worker, endpoint_switch)


def _register_template_helpers(app: Flask, settings: Settings) -> None:
    """Add response headers, and the functions and filters that templates use."""

    @app.after_request
    def add_headers(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.context_processor
    def template_values() -> dict[str, object]:
        lang = getattr(g, "lang", None) or current_language()
        other = "en" if lang == "ar" else "ar"
        return {
            "lang": lang,
            "direction": "rtl" if lang == "ar" else "ltr",
            "other_lang": other,
            "other_lang_url": f"{request.path}?{urlencode({**request.args.to_dict(), 'lang': other})}",
            "translate": lambda key, **values: texts.translate(key, lang, **values),
            "product_name": lambda code: texts.product_name(code, lang),
            "product_description": lambda code: texts.product_description(code, lang),
            "format_money": lambda amount: texts.format_money(amount, lang),
            "format_time": lambda at: texts.format_time(datetime.fromtimestamp(at, _TRIPOLI), lang),
            "is_test": _is_test(settings.credentials_file),
            "has_admin": settings.has_admin,
            # Not for customers, who have no account in the dashboard.
            "dashboard_link": settings.dashboard_link if settings.has_admin else lambda *_path: None,
        }

    app.add_template_filter(_iso, "iso")
    app.add_template_filter(_clock, "clock")


def _is_test(credentials_file: Path) -> bool:
    try:
        return read_credentials(credentials_file).is_test
    except CredentialsError:
        return False  # the page is about something else


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, _TRIPOLI).strftime("%H:%M:%S")


def _register_error_pages(app: Flask) -> None:
    @app.errorhandler(CSRFError)
    def handle_csrf_error(_error: CSRFError) -> ResponseReturnValue:
        return render_template("error.html", error="form"), 400

    @app.errorhandler(HTTPException)
    def handle_http_error(error: HTTPException) -> ResponseReturnValue:
        status = error.code or 500
        return render_template("error.html", error="not_found" if status < 500 else "error"), status


def _register_operations(app: Flask, database: Database, credentials_file: Path) -> None:
    @app.get("/readyz")
    def readyz() -> ResponseReturnValue:
        try:
            database.check()
            read_credentials(credentials_file)
        except (OSError, sqlite3.Error, CredentialsError) as error:
            return {"ready": False, "why": str(error)}, 503
        return {"ready": True}

    @app.get("/favicon.ico")
    def favicon() -> ResponseReturnValue:
        return app.redirect(url_for("static", filename="mark.svg"))

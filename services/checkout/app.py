"""The Flask application of the checkout."""

from dataclasses import replace

from flask import Flask

from services.checkout.dependencies import SERVICE, build_dependencies, open_database
from services.checkout.pages.entered_wallet import EnteredWallets
from services.checkout.pages.error_pages import is_machine_request, render_error_page
from services.checkout.pages.labels import error_message
from services.checkout.pages.language import register_languages
from services.checkout.pages.views import pages_blueprint
from services.checkout.providers.notification_routes import NotificationHandler, provider_blueprint
from shared.console.style_tokens import register_style_tokens
from shared.platform.database.pool import Database
from shared.platform.keys import open_keys
from shared.platform.process import start_tracing, start_worker_process
from shared.platform.settings import KeyPurpose, Settings
from shared.platform.web.app import create_app, trust_proxies
from shared.platform.web.browser_security import protect_pages
from shared.platform.web.errors import register_html_errors
from shared.platform.web.health import database_checks
from shared.platform.web.static_files import add_static_urls

_MAX_CONNECTIONS = 16
_STATEMENT_TIMEOUT_S = 10
_MAX_FORM_BYTES = 16 * 1024


def make_worker_app() -> Flask:
    """Create the application in a worker process."""
    settings = start_worker_process(SERVICE, uses_kafka=False)
    start_tracing(SERVICE, settings.tracing)
    # No connection is held while waiting for a provider, so a few connections serve many threads.
    database_settings = replace(
        settings.database,
        pool_size=min(settings.checkout.threads, _MAX_CONNECTIONS),
        pool_timeout_s=max(settings.database.pool_timeout_s, 5.0),
        statement_timeout_s=min(settings.database.statement_timeout_s, _STATEMENT_TIMEOUT_S),
    )
    return make_app(settings, open_database(database_settings))


def make_app(settings: Settings, database: Database) -> Flask:
    checks = database_checks(settings, database)
    app = create_app(SERVICE, checks, settings.metrics_dir, package=__package__, joins_traces=True)
    app.config["MAX_CONTENT_LENGTH"] = _MAX_FORM_BYTES
    app.config["MAX_FORM_MEMORY_SIZE"] = _MAX_FORM_BYTES
    app.config["MAX_FORM_PARTS"] = 20
    dependencies = build_dependencies(settings, database)
    keys = open_keys(settings)
    guard = protect_pages(app, settings.public_urls.checkout, keys.cookie_keys())
    register_style_tokens(app)
    add_static_urls(app)
    register_languages(app)
    app.jinja_env.globals["error_message"] = error_message
    wallets = EnteredWallets(keys.open_box(KeyPurpose.SESSIONS))
    app.register_blueprint(pages_blueprint(database, dependencies.providers, dependencies.payments, wallets))
    providers = provider_blueprint(
        NotificationHandler(database, dependencies.side_effects), dependencies.providers, settings.sandbox
    )
    guard.exempt(providers)
    app.register_blueprint(providers)
    register_html_errors(app, is_for_program=is_machine_request, render_page=render_error_page)
    trust_proxies(app, settings.trusted_proxies)
    return app

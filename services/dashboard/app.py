"""Puts the dashboard's pages together."""

from dataclasses import replace

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from services.dashboard.access import guard
from services.dashboard.applications.routes import applications_blueprint
from services.dashboard.deliveries.routes import deliveries_blueprint
from services.dashboard.layout import lay_out
from services.dashboard.overview.routes import overview_blueprint
from services.dashboard.payments.routes import payments_blueprint
from services.dashboard.people.routes import people_blueprint
from services.dashboard.troubles import trouble_page
from services.dashboard.workshop import SERVICE, set_up
from shared.console.error_pages import is_for_program, too_many_passwords
from shared.console.language import speak_languages
from shared.console.ui import furnish
from shared.domain.accounts.passwords import TooManyPasswordsError
from shared.platform.database.connections import STEADY_PLANS
from shared.platform.database.pool import Database
from shared.platform.process import begin_worker
from shared.platform.settings import Settings
from shared.platform.tracing.setup import start_tracing
from shared.platform.web.app import create_app
from shared.platform.web.browser_security import protect_pages
from shared.platform.web.errors import answer_errors_as_pages
from shared.platform.web.readiness import database_checks
from shared.platform.web.static_files import add_static_urls


def make_worker_app() -> Flask:
    """What a worker, which is a process of its own, begins with."""
    settings = begin_worker(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    database_settings = replace(
        settings.database, pool_size=min(settings.dashboard.threads, settings.database.pool_size)
    )
    return make_app(settings, Database(database_settings, SERVICE, **STEADY_PLANS))


def make_app(settings: Settings, database: Database) -> Flask:
    checks = database_checks(settings, database)
    app = create_app(SERVICE, checks, settings.metrics_dir, package=__package__)
    app.config["MAX_FORM_PARTS"] = 100
    workshop = set_up(settings, database)
    protect_pages(app, settings.public_urls.dashboard, settings.secret_keys)
    furnish(app)
    add_static_urls(app)
    speak_languages(app, home="applications.listing")
    guard(app, database)
    lay_out(app, database)
    for blueprint in (
        people_blueprint(workshop),
        applications_blueprint(workshop),
        overview_blueprint(workshop),
        payments_blueprint(workshop),
        deliveries_blueprint(workshop),
    ):
        app.register_blueprint(blueprint)
    answer_errors_as_pages(app, is_for_program=is_for_program, page_of=trouble_page)
    app.register_error_handler(TooManyPasswordsError, too_many_passwords(trouble_page))
    if settings.dashboard.trusted_proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.dashboard.trusted_proxies, x_proto=0)  # type: ignore[method-assign]
    return app

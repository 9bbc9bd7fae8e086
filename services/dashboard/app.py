"""Creates the dashboard's Flask application."""

from dataclasses import replace

from flask import Flask
from flask_babel import lazy_gettext as _
from werkzeug import exceptions

from services.dashboard.access import install_guard
from services.dashboard.applications.views import applications_blueprint
from services.dashboard.deliveries.views import deliveries_blueprint
from services.dashboard.dependencies import SERVICE, build_dependencies
from services.dashboard.layout import register_layout
from services.dashboard.overview.views import overview_blueprint
from services.dashboard.payments.views import payments_blueprint
from services.dashboard.people.change_mail import register_change_mails
from services.dashboard.people.password_prompt import PasswordPrompt
from services.dashboard.people.views import people_blueprint
from services.dashboard.row_security import ScopedDatabase
from shared.console import ui
from shared.console.error_pages import make_error_page
from shared.platform.database.pool import Database
from shared.platform.keys import open_keys
from shared.platform.process import start_tracing, start_worker_process
from shared.platform.settings import Settings
from shared.platform.web.app import create_app, trust_proxies
from shared.platform.web.browser_security import protect_pages
from shared.platform.web.health import database_checks

error_page = make_error_page(
    unavailable=(_("We cannot answer at the moment"), _("Try again in a moment.")),
    own_texts={
        exceptions.Forbidden: (
            _("Your role does not allow this"),
            _("Nothing was changed. An owner of your team can do it, or give you another role."),
        ),
        exceptions.Gone: (
            _("This invitation is no longer valid"),
            _("It was used, or its seven days have passed. Ask an owner of the team for a new link."),
        ),
    },
)


def make_worker_app() -> Flask:
    """Create the application in a worker process."""
    settings = start_worker_process(SERVICE, uses_kafka=False)
    start_tracing(SERVICE, settings.tracing)
    database_settings = replace(
        settings.database, pool_size=min(settings.dashboard.threads, settings.database.pool_size)
    )
    return make_app(settings, Database(database_settings, SERVICE))


def make_app(settings: Settings, database: Database) -> Flask:
    checks = database_checks(settings, database)
    app = create_app(SERVICE, checks, settings.metrics_dir, package=__package__)
    app.config["MAX_FORM_PARTS"] = 100
    scoped = ScopedDatabase(database)
    dependencies = build_dependencies(settings, scoped)
    protect_pages(app, settings.public_urls.dashboard, open_keys(settings).cookie_keys())
    ui.register(
        app,
        home="applications.listing",
        home_label=_("To your applications"),
        tagline=(_("Every payment weighed."), _("Every message accounted for.")),
        error_page=error_page,
    )
    install_guard(app, scoped, PasswordPrompt(dependencies).confirm)
    register_layout(app, scoped)
    register_change_mails(app, dependencies)
    for blueprint in (
        people_blueprint(dependencies),
        applications_blueprint(dependencies),
        overview_blueprint(dependencies),
        payments_blueprint(dependencies),
        deliveries_blueprint(dependencies),
    ):
        app.register_blueprint(blueprint)
    trust_proxies(app, settings.trusted_proxies)
    return app

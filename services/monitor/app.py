"""Builds the monitor's Flask application and starts its background threads."""

from dataclasses import replace

from flask import Flask, request
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext as _

from services.monitor.access import install_guard
from services.monitor.applications.views import create_applications_blueprint
from services.monitor.attempts.views import create_attempts_blueprint
from services.monitor.dead_letters.views import create_dead_letters_blueprint
from services.monitor.dependencies import SERVICE, build_dependencies
from services.monitor.exhausted_deliveries.views import create_exhausted_deliveries_blueprint
from services.monitor.formatting import register_formatting
from services.monitor.inspection.inspector import SystemInspector
from services.monitor.inspection.metrics import register_metrics
from services.monitor.overview.views import create_overview_blueprint
from services.monitor.people.views import create_people_blueprint
from services.monitor.search.views import create_search_blueprint
from services.monitor.topics.views import create_topics_blueprint
from shared.console import ui
from shared.console.error_pages import (
    UNAVAILABLE_DURING_CHANGE,
    is_for_program,
    make_error_page,
    render_error_page,
)
from shared.platform.database.pool import Database
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.keys import open_keys
from shared.platform.process import start_tracing, start_worker_process
from shared.platform.settings import Settings
from shared.platform.web.app import create_app, trust_proxies
from shared.platform.web.browser_security import protect_pages
from shared.platform.web.documentation import documentation_blueprint_of_console
from shared.platform.web.health import database_checks

_KAFKA_UNAVAILABLE = _("Kafka does not answer")
_NOTHING_CHANGED = _("This page needs Kafka and cannot be shown now. Nothing was changed.")

error_page = make_error_page(
    unavailable=(
        _("The database does not answer"),
        _("This page needs the database and cannot be shown now. The overview still works."),
    )
)


def show_kafka_unavailable(_error: KafkaUnavailableError) -> ResponseReturnValue:
    if is_for_program():
        return {"message": "Kafka does not answer."}, 503
    # A record that was being sent when the time limit passed may still arrive.
    text = _NOTHING_CHANGED if request.method == "GET" else UNAVAILABLE_DURING_CHANGE[1]
    return render_error_page((_KAFKA_UNAVAILABLE, text)), 503


def make_worker_app() -> Flask:
    """Build the application and start the background threads. Runs in the worker process, after fork."""
    settings = start_worker_process(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    database_settings = replace(
        settings.database, pool_size=min(settings.monitor.threads, settings.database.pool_size)
    )
    database = Database(database_settings, SERVICE)
    inspector = SystemInspector(settings, database)
    inspector.start()
    register_metrics(inspector)
    return make_app(settings, database, inspector)


def make_app(settings: Settings, database: Database, inspector: SystemInspector) -> Flask:
    """Build the application. The caller starts the inspector."""
    checks = {**database_checks(settings, database), "inspector": inspector.check}
    app = create_app(SERVICE, checks, settings.metrics_dir, package=__package__)
    app.config["MAX_FORM_PARTS"] = 1000
    dependencies = build_dependencies(settings, database, inspector)
    protect_pages(app, settings.public_urls.monitor, open_keys(settings).cookie_keys())
    ui.register(
        app,
        home="overview.show",
        home_label=_("To the overview"),
        tagline=(_("Nothing lost."), _("Nothing stuck unnoticed.")),
        error_page=error_page,
    )
    app.context_processor(lambda: {"header_title": _("Monitor")})
    register_formatting(app)
    install_guard(app, database)
    for blueprint in (
        create_people_blueprint(dependencies),
        create_overview_blueprint(dependencies),
        create_topics_blueprint(dependencies),
        create_dead_letters_blueprint(dependencies),
        create_exhausted_deliveries_blueprint(dependencies),
        create_attempts_blueprint(dependencies),
        create_applications_blueprint(dependencies),
        create_search_blueprint(dependencies),
        documentation_blueprint_of_console(settings.documentation_dir, f"{settings.public_urls.api}/docs"),
    ):
        app.register_blueprint(blueprint)
    app.register_error_handler(KafkaUnavailableError, show_kafka_unavailable)
    trust_proxies(app, settings.trusted_proxies)
    return app

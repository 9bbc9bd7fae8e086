"""Builds the monitor's Flask application and starts its background threads."""

from dataclasses import replace

from flask import Flask, request
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext as _

from services.monitor.access import install_guard
from services.monitor.applications.views import applications_blueprint
from services.monitor.attempts.views import attempts_blueprint
from services.monitor.dead_letters.replayer import Replayer
from services.monitor.dead_letters.views import dead_letters_blueprint
from services.monitor.dependencies import SERVICE, build_dependencies
from services.monitor.exhausted_deliveries.views import exhausted_deliveries_blueprint
from services.monitor.inspection.inspector import Watch
from services.monitor.inspection.metrics import expose
from services.monitor.overview.views import overview_blueprint
from services.monitor.people.views import people_blueprint
from services.monitor.topics.views import topics_blueprint
from shared.console import ui
from shared.console.error_pages import (
    UNAVAILABLE_DURING_CHANGE,
    is_for_program,
    make_error_page,
    render_error_page,
)
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.process import start_tracing, start_worker_process
from shared.platform.settings import Settings
from shared.platform.web.app import create_app
from shared.platform.web.browser_security import protect_pages
from shared.platform.web.health import database_checks

_KAFKA_UNAVAILABLE = _("Kafka does not answer")
_NOTHING_CHANGED = _("What needs it cannot be shown or done now. Nothing was changed.")

error_page = make_error_page(
    unavailable=(
        _("The database does not answer"),
        _("What needs it cannot be shown now. The overview still tells the rest."),
    )
)


def answer_kafka_unavailable(_error: KafkaUnavailableError) -> ResponseReturnValue:
    if is_for_program():
        return {"message": "Kafka does not answer."}, 503
    # A record that was being sent when the time limit passed may still arrive.
    text = _NOTHING_CHANGED if request.method == "GET" else UNAVAILABLE_DURING_CHANGE[1]
    return render_error_page((_KAFKA_UNAVAILABLE, text)), 503


def make_worker_app() -> Flask:
    """What the worker, which is a process of its own, begins with."""
    settings = start_worker_process(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    database_settings = replace(
        settings.database, pool_size=min(settings.monitor.threads, settings.database.pool_size)
    )
    database = Database(database_settings, SERVICE, **STABLE_PLANS)
    watch = Watch(settings, database)
    watch.start()
    expose(watch)
    Replayer(database, settings.kafka).start()
    return make_app(settings, database, watch)


def make_app(settings: Settings, database: Database, watch: Watch) -> Flask:
    """`watch` is looked at, and started by whoever made it."""
    checks = {**database_checks(settings, database), "watch": watch.check}
    app = create_app(SERVICE, checks, settings.metrics_dir, package=__package__)
    app.config["MAX_FORM_PARTS"] = 1000
    dependencies = build_dependencies(settings, database, watch)
    protect_pages(app, settings.public_urls.monitor, settings.secret_keys)
    ui.register(
        app,
        home="overview.show",
        tagline=(_("Nothing lost."), _("Nothing stuck without somebody knowing.")),
        error_page=error_page,
    )
    app.context_processor(lambda: {"header_title": _("Monitor")})
    install_guard(app, database)
    for blueprint in (
        people_blueprint(dependencies),
        overview_blueprint(dependencies),
        topics_blueprint(dependencies),
        dead_letters_blueprint(dependencies),
        exhausted_deliveries_blueprint(dependencies),
        attempts_blueprint(dependencies),
        applications_blueprint(dependencies),
    ):
        app.register_blueprint(blueprint)
    app.register_error_handler(KafkaUnavailableError, answer_kafka_unavailable)
    return app

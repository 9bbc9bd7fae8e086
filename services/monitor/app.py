"""Builds the monitor's Flask application and starts its background threads."""

from dataclasses import replace

from flask import Flask, g, request
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext as _

from services.monitor.access import guard
from services.monitor.applications.views import applications_blueprint
from services.monitor.attempts.views import attempts_blueprint
from services.monitor.dead_letters.replayer import Replayer
from services.monitor.dead_letters.views import dead_letters_blueprint
from services.monitor.dependencies import SERVICE, set_up
from services.monitor.exhausted_deliveries.views import exhausted_deliveries_blueprint
from services.monitor.inspection.inspector import Watch
from services.monitor.inspection.metrics import expose
from services.monitor.overview.views import overview_blueprint
from services.monitor.people.views import people_blueprint
from services.monitor.topics.views import topics_blueprint
from shared.console.error_pages import (
    AWAY_CHANGING,
    is_for_program,
    show_trouble,
    too_many_passwords,
    trouble_pages,
)
from shared.console.language import speak_languages
from shared.console.ui import furnish
from shared.domain.accounts.passwords import TooManyPasswordsError
from shared.platform.database.connections import STEADY_PLANS
from shared.platform.database.pool import Database
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.process import begin_worker
from shared.platform.settings import Settings
from shared.platform.tracing.setup import start_tracing
from shared.platform.web.app import create_app
from shared.platform.web.browser_security import protect_pages
from shared.platform.web.errors import answer_errors_as_pages
from shared.platform.web.readiness import database_checks
from shared.platform.web.static_files import add_static_urls

_KAFKA_AWAY = _("Kafka does not answer")
_NOTHING_CHANGED = _("What needs it cannot be shown or done now. Nothing was changed.")

trouble_page = trouble_pages(
    away=(
        _("The database does not answer"),
        _("What needs it cannot be shown now. The overview still tells the rest."),
    )
)


def answer_kafka_away(_error: KafkaUnavailableError) -> ResponseReturnValue:
    if is_for_program():
        return {"message": "Kafka does not answer."}, 503
    # What was on the wire when our patience ended may still arrive.
    text = _NOTHING_CHANGED if request.method == "GET" else AWAY_CHANGING[1]
    return show_trouble((_KAFKA_AWAY, text)), 503


def lay_out(app: Flask) -> None:
    @app.context_processor
    def surroundings() -> dict[str, object]:
        who = g.get("signed_in")
        return {
            "signed_in": who is not None,
            "operator": who.operator if who else None,
            "section": request.blueprint,
        }


def make_worker_app() -> Flask:
    """What the worker, which is a process of its own, begins with."""
    settings = begin_worker(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    database_settings = replace(
        settings.database, pool_size=min(settings.monitor.threads, settings.database.pool_size)
    )
    database = Database(database_settings, SERVICE, **STEADY_PLANS)
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
    workshop = set_up(settings, database, watch)
    protect_pages(app, settings.public_urls.monitor, settings.secret_keys)
    furnish(app)
    add_static_urls(app)
    speak_languages(app, home="overview.show")
    guard(app, database)
    lay_out(app)
    for blueprint in (
        people_blueprint(workshop),
        overview_blueprint(workshop),
        topics_blueprint(workshop),
        dead_letters_blueprint(workshop),
        exhausted_deliveries_blueprint(workshop),
        attempts_blueprint(workshop),
        applications_blueprint(workshop),
    ):
        app.register_blueprint(blueprint)
    answer_errors_as_pages(app, is_for_program=is_for_program, page_of=trouble_page)
    app.register_error_handler(TooManyPasswordsError, too_many_passwords(trouble_page))
    app.register_error_handler(KafkaUnavailableError, answer_kafka_away)
    return app

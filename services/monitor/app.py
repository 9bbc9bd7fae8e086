"""Puts the monitor's pages together."""

from dataclasses import replace

from flask import Flask

from services.monitor.access import guard
from services.monitor.applications.routes import applications_blueprint
from services.monitor.attempts.routes import attempts_blueprint
from services.monitor.dead.replayer import Replayer
from services.monitor.dead.routes import dead_blueprint
from services.monitor.layout import lay_out
from services.monitor.overview.routes import overview_blueprint
from services.monitor.people.routes import people_blueprint
from services.monitor.topics.routes import topics_blueprint
from services.monitor.troubles import answer_kafka_away, trouble_page
from services.monitor.watch.collector import expose
from services.monitor.watch.watch import Watch
from services.monitor.workshop import SERVICE, set_up
from shared.console.error_pages import is_for_program, too_many_passwords
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
        dead_blueprint(workshop),
        attempts_blueprint(workshop),
        applications_blueprint(workshop),
    ):
        app.register_blueprint(blueprint)
    answer_errors_as_pages(app, is_for_program=is_for_program, page_of=trouble_page)
    app.register_error_handler(TooManyPasswordsError, too_many_passwords(trouble_page))
    app.register_error_handler(KafkaUnavailableError, answer_kafka_away)
    return app

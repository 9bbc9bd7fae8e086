"""Puts the API together."""

from dataclasses import replace

from flask import Flask
from flask.typing import ResponseReturnValue

from services.api.authentication import ApiKeyRefusedError, Authentication, TokenRefusedError
from services.api.fast_lane import FastLane
from services.api.openapi.document import make_document
from services.api.payment_intents import PaymentIntents
from services.api.rate_limit import RateLimit, TooManyRequestsError
from services.api.reference import reference_blueprint
from services.api.representation import Representation
from services.api.routes import add_routes
from services.api.validation import InvalidRequestError
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.process import start_tracing, start_worker_process
from shared.platform.settings import Settings
from shared.platform.web.app import MAX_BODY_BYTES, create_app
from shared.platform.web.health import database_checks

SERVICE = "api"
BASE_PATH = "/api/v1"
_STATEMENT_TIMEOUT_S = 5


def make_worker_app() -> Flask:
    """What a worker, which is a process of its own, begins with."""
    settings = start_worker_process(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    # Nobody waits long for the API, and each thread has a connection of its own.
    database_settings = replace(
        settings.database,
        pool_size=settings.api.threads,
        statement_timeout_s=min(settings.database.statement_timeout_s, _STATEMENT_TIMEOUT_S),
    )
    return make_app(settings, Database(database_settings, SERVICE, **STABLE_PLANS))


def make_app(settings: Settings, database: Database) -> Flask:
    checks = database_checks(settings, database)
    intents = PaymentIntents(
        database,
        Authentication(database),
        RateLimit(settings.api.rate_limit, settings.api.rate_burst),
        Representation(settings.public_urls.checkout),
    )
    app = create_app(
        SERVICE,
        checks,
        settings.metrics_dir,
        package=__package__,
        wrap=lambda flask: FastLane(flask, BASE_PATH, intents, MAX_BODY_BYTES),
    )
    add_routes(app, BASE_PATH, intents)
    document = make_document(settings.public_urls, BASE_PATH)
    app.register_blueprint(reference_blueprint(document, f"{BASE_PATH}/openapi.json"))
    _answer_refusals(app)
    return app


def _answer_refusals(app: Flask) -> None:
    """The bodies of §7."""

    @app.errorhandler(ApiKeyRefusedError)
    def api_key_refused(error: ApiKeyRefusedError) -> ResponseReturnValue:
        return {"error": str(error)}, 401

    @app.errorhandler(TokenRefusedError)
    def token_refused(error: TokenRefusedError) -> ResponseReturnValue:
        return {"message": str(error)}, 401, {"WWW-Authenticate": "Bearer"}

    @app.errorhandler(InvalidRequestError)
    def invalid(error: InvalidRequestError) -> ResponseReturnValue:
        return {"message": "The request is not valid.", "errors": error.errors}, 422

    @app.errorhandler(TooManyRequestsError)
    def too_many(error: TooManyRequestsError) -> ResponseReturnValue:
        return {"message": str(error)}, 429, {"Retry-After": str(error.retry_after)}

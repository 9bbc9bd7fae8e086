"""Creates the API's Flask application: its two routes, the fast path, the reference and the error responses."""

from dataclasses import replace

from flask import Flask, Response, request

from services.api.authentication import Authentication
from services.api.error_responses import register_error_responses
from services.api.fast_path import FastPath
from services.api.openapi.document import make_document
from services.api.payment_intents import ApiResponse, PaymentIntents
from services.api.rate_limit import RateLimit
from services.api.reference import reference_blueprint
from services.api.representation import Representation
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.process import start_tracing, start_worker_process
from shared.platform.settings import Settings
from shared.platform.web.app import MAX_BODY_BYTES, create_app, trust_proxies
from shared.platform.web.documentation import documentation_blueprint
from shared.platform.web.health import database_checks

SERVICE = "api"
BASE_PATH = "/api/v1"
_STATEMENT_TIMEOUT_S = 5


def make_worker_app() -> Flask:
    """Create the application of a worker, in the worker's own process."""
    settings = start_worker_process(SERVICE, uses_kafka=False)
    start_tracing(SERVICE, settings.tracing)
    # Callers of the API do not wait long, and each thread has its own connection.
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
        RateLimit(settings.api.refusals_per_minute / 60, settings.api.refusals_per_minute),
        Representation(settings.public_urls.checkout),
    )
    app = create_app(
        SERVICE,
        checks,
        settings.metrics_dir,
        package=__package__,
        wrap=lambda flask: FastPath(flask, BASE_PATH, intents, MAX_BODY_BYTES),
    )
    _add_routes(app, BASE_PATH, intents)
    app.register_blueprint(
        reference_blueprint(
            lambda: make_document(settings.public_urls, BASE_PATH), f"{BASE_PATH}/openapi.json"
        )
    )
    app.register_blueprint(documentation_blueprint(settings.documentation_dir))
    register_error_responses(app)
    trust_proxies(app, settings.trusted_proxies)
    return app


def _add_routes(app: Flask, base_path: str, intents: PaymentIntents) -> None:
    @app.post(f"{base_path}/payment-intents")
    def create() -> Response:
        application_id = intents.authenticate(request.environ)
        return _json_response(intents.create(application_id, request.get_data(cache=False)))

    @app.get(f"{base_path}/payment-intents/<payment_intent>")
    def retrieve(payment_intent: str) -> Response:
        return _json_response(intents.retrieve(intents.authenticate(request.environ), payment_intent))


def _json_response(response: ApiResponse) -> Response:
    return Response(response.body, response.status, content_type="application/json")

"""Makes the Flask application every service starts from."""

from collections.abc import Mapping
from pathlib import Path

from flask import Flask
from flask.json.provider import DefaultJSONProvider

from shared.metrics import require_metrics_mode
from shared.web.body_limit import limit_chunked_bodies
from shared.web.errors import answer_errors_as_json
from shared.web.operations import operations_blueprint
from shared.web.readiness import Check
from shared.web.request_id import RequestIds
from shared.web.request_metrics import count_requests

MAX_BODY_BYTES = 64 * 1024


def create_app(
    service: str,
    checks: Mapping[str, Check],
    metrics_dir: Path | None = None,
    package: str | None = None,
) -> Flask:
    """An application with JSON errors, request ids, /healthz, /readyz and /metrics.

    `package` is where templates and static files are looked for; without it there are none.
    """
    require_metrics_mode(metrics_dir)
    app = Flask(package or __name__, static_folder="static" if package else None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    assert isinstance(app.json, DefaultJSONProvider)
    app.json.sort_keys = False
    app.wsgi_app = RequestIds(app.wsgi_app)  # type: ignore[method-assign]
    count_requests(app, service)
    limit_chunked_bodies(app)
    answer_errors_as_json(app)
    app.register_blueprint(operations_blueprint(checks, metrics_dir))
    return app

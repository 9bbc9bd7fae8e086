"""Makes the Flask application every service starts from."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Flask
from flask.json.provider import DefaultJSONProvider

from shared.metrics import require_metrics_mode
from shared.web.body_limit import LimitedRequest
from shared.web.edge import Edge
from shared.web.errors import answer_errors_as_json
from shared.web.operations import operations_blueprint
from shared.web.readiness import Check

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

MAX_BODY_BYTES = 64 * 1024


def create_app(
    service: str,
    checks: Mapping[str, Check],
    metrics_dir: Path | None = None,
    package: str | None = None,
    in_front: "Callable[[WSGIApplication], WSGIApplication] | None" = None,
    *,
    joins_traces: bool = False,
) -> Flask:
    """An application with JSON errors, request ids, /healthz, /readyz and /metrics.

    `package` is where templates and static files are looked for; without it there are none.
    `in_front` wraps Flask, inside of what counts and logs every request.
    `joins_traces` where a request belongs to the trace of what it is about, not of who sends it.
    """
    require_metrics_mode(metrics_dir)
    app = _App(package or __name__, static_folder="static" if package else None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    # A path with two slashes is unknown; Werkzeug would redirect to whatever the Host header says.
    app.url_map.merge_slashes = False
    assert isinstance(app.json, DefaultJSONProvider)
    app.json.sort_keys = False
    inner = in_front(app.wsgi_app) if in_front else app.wsgi_app
    app.wsgi_app = Edge(inner, service, joins_traces=joins_traces)  # type: ignore[method-assign]
    answer_errors_as_json(app)
    app.register_blueprint(operations_blueprint(checks, metrics_dir))
    return app


class _App(Flask):
    request_class = LimitedRequest

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """No view of ours is a coroutine, so none is asked, several times a request, whether it is one."""
        return func

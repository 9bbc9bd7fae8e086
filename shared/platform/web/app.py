"""Makes the Flask application every service starts from."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from flask import Flask, Request
from flask.json.provider import DefaultJSONProvider
from werkzeug.utils import cached_property

from shared.platform.metrics import require_metrics_mode
from shared.platform.web.edge import Edge
from shared.platform.web.errors import answer_errors_as_json
from shared.platform.web.operations import operations_blueprint
from shared.platform.web.readiness import Check

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class LimitedRequest(Request):
    """Reads nothing before a view asks for the body: who may not send one cannot hold a thread with it."""

    @cached_property
    def stream(self) -> IO[bytes]:
        _read_chunks(self.environ, self.max_content_length)
        stream: IO[bytes] = super().stream
        return stream


def _read_chunks(environ: "WSGIEnvironment", limit: int | None) -> None:
    """Gives a body that came in chunks its length; where it is over the limit, Werkzeug refuses it for that."""
    if limit is not None and environ.get("HTTP_TRANSFER_ENCODING") and not environ.get("CONTENT_LENGTH"):
        body = environ["wsgi.input"].read(limit + 1)
        del environ["HTTP_TRANSFER_ENCODING"]
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))


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

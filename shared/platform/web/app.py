"""Creates the Flask application that every service starts from."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from flask import Flask, Request
from flask.json.provider import DefaultJSONProvider
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.utils import cached_property

from shared.platform.metrics import require_metrics_mode
from shared.platform.web.errors import register_json_errors
from shared.platform.web.health import Check, operations_blueprint
from shared.platform.web.middleware import RequestMiddleware

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

MAX_BODY_BYTES = 64 * 1024
REQUEST_LIMIT_S = 10.0
"""How long a request may take to arrive: its headers, and its body."""


class LimitedRequest(Request):
    """Reads the body only when a view asks for it, so that unauthenticated callers cannot hold a thread with one."""

    @cached_property
    def stream(self) -> IO[bytes]:
        _read_chunks(self.environ, self.max_content_length)
        stream: IO[bytes] = super().stream
        return stream


def _read_chunks(environ: "WSGIEnvironment", limit: int | None) -> None:
    """Read a chunked body and set its length. Werkzeug refuses it if that is over the limit."""
    if limit is not None and environ.get("HTTP_TRANSFER_ENCODING") and not environ.get("CONTENT_LENGTH"):
        body = environ["wsgi.input"].read(limit + 1)
        del environ["HTTP_TRANSFER_ENCODING"]
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))


def create_app(
    service: str,
    checks: Mapping[str, Check],
    metrics_dir: Path | None = None,
    package: str | None = None,
    wrap: "Callable[[WSGIApplication], WSGIApplication] | None" = None,
    *,
    joins_traces: bool = False,
) -> Flask:
    """Create an application with JSON errors, request ids, /healthz, /readyz and /metrics.

    `package` has the templates and static files; without it there are none.
    `wrap` puts a WSGI application around Flask, inside the middleware that counts and logs requests.
    `joins_traces` makes a request part of the trace of what it is about, instead of its caller's.
    """
    require_metrics_mode(metrics_dir)
    app = _App(package or __name__, static_folder="static" if package else None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    # A path with two slashes is unknown. Werkzeug would redirect it to whatever the Host header says.
    app.url_map.merge_slashes = False
    assert isinstance(app.json, DefaultJSONProvider)
    app.json.sort_keys = False
    inner = wrap(app.wsgi_app) if wrap else app.wsgi_app
    app.wsgi_app = RequestMiddleware(inner, service, joins_traces=joins_traces)  # type: ignore[method-assign]
    register_json_errors(app)
    app.register_blueprint(operations_blueprint(checks, metrics_dir))
    return app


def trust_proxies(app: Flask, proxies: int) -> None:
    """Take the client's address from X-Forwarded-For, which each of our `proxies` extends. Call this last.

    With 0 the header is ignored: anybody could send it.
    """
    if proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=0)  # type: ignore[method-assign]


class _App(Flask):
    request_class = LimitedRequest

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return the view itself: none is a coroutine, and checking that several times a request is slow."""
        return func

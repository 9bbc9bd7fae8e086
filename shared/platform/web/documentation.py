"""Serves the documentation site that `make docs` builds, at /docs/en/ and /docs/ar/. All of it is public."""

import mimetypes
import os.path
from pathlib import Path

from flask import Blueprint, Response, redirect, request
from werkzeug.exceptions import NotFound
from werkzeug.security import safe_join
from werkzeug.wrappers import Response as BaseResponse

from shared.platform.web.languages import LANGUAGES

_RULES = tuple(f"/docs/<any({', '.join(LANGUAGES)}):lang>{path}" for path in ("", "/", "/<path:path>"))
# The generator's pages set styles with attributes, and its stylesheet has icons as data.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src {scripts}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "public, max-age=300",
}


def documentation_blueprint(directory: Path) -> Blueprint:
    """Create the routes for a service without sessions: the pages may run the generator's scripts, for the search."""
    return _blueprint(directory, _POLICY.format(scripts="'self'"))


def documentation_blueprint_of_console(directory: Path, reference_url: str) -> Blueprint:
    """Create the routes for a console. Scripts are not run: they could act with the session of whoever is signed in.

    `reference_url` is where /docs leads.
    """
    blueprint = _blueprint(directory, _POLICY.format(scripts="'none'"))

    def reference() -> BaseResponse:
        query = request.query_string.decode("latin-1")
        return redirect(f"{reference_url}?{query}" if query else reference_url)

    blueprint.add_url_rule("/docs", view_func=reference)
    return blueprint


def _blueprint(directory: Path, policy: str) -> Blueprint:
    blueprint = Blueprint("documentation", __name__)

    def documentation(lang: str, path: str = "") -> BaseResponse:
        response = _serve(directory / lang, path)
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = policy
        return response

    for rule in _RULES:
        blueprint.add_url_rule(rule, view_func=documentation)
    return blueprint


def _serve(root: Path, path: str) -> BaseResponse:
    """Return a file of the site, or the page of a directory. Raises NotFound if the site was not built."""
    if not (root / "index.html").is_file():
        raise NotFound("The documentation was not built. `make docs` builds it.")
    found = safe_join(str(root), path)
    # os.path, because Path.is_dir raises an error if the name is too long.
    if found is not None and os.path.isdir(found):  # noqa: PTH112
        if not request.path.endswith("/"):
            return redirect(f"{request.path}/")
        found = safe_join(found, "index.html")
    if found is None or not os.path.isfile(found):  # noqa: PTH113
        return Response((root / "404.html").read_bytes(), 404, mimetype="text/html")
    # In one piece: a client that reads slowly must not hold a thread.
    response = Response(Path(found).read_bytes(), mimetype=mimetypes.guess_type(found)[0])
    response.add_etag()
    return response.make_conditional(request)

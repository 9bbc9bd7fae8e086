"""Serves the documentation site that `make docs` builds, at /docs/en/ and /docs/ar/."""

from pathlib import Path

from flask import Blueprint, Response, redirect, request, send_from_directory
from werkzeug.exceptions import NotFound
from werkzeug.security import safe_join
from werkzeug.wrappers import Response as BaseResponse

from shared.platform.web.languages import LANGUAGES

_RULES = tuple(f"/docs/<any({', '.join(LANGUAGES)}):lang>{path}" for path in ("", "/", "/<path:path>"))
_HEADERS = {
    # The generator's pages set styles with attributes, and its stylesheet has icons as data.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "public, max-age=300",
}


def documentation_blueprint(directory: Path, reference_url: str | None = None) -> Blueprint:
    """Create the routes. `reference_url` is where /docs leads, in a service that does not have the API reference."""
    blueprint = Blueprint("documentation", __name__)

    def documentation(lang: str, path: str = "") -> BaseResponse:
        return _serve(directory / lang, path)

    for rule in _RULES:
        blueprint.add_url_rule(rule, view_func=documentation)
    if reference_url is not None:
        blueprint.add_url_rule("/docs", "reference", lambda: redirect(reference_url))
    return blueprint


def _serve(root: Path, path: str) -> BaseResponse:
    """Return a file of the site, or the page of a directory. Raises NotFound if the site was not built."""
    if not (root / "index.html").is_file():
        raise NotFound("The documentation was not built. `make docs` builds it.")
    found = safe_join(str(root), path)
    is_directory = found is not None and Path(found).is_dir()
    if is_directory and not request.path.endswith("/"):
        return redirect(f"{request.path}/")
    try:
        response = send_from_directory(root, f"{path}index.html" if is_directory else path)
    except NotFound:
        response = Response((root / "404.html").read_bytes(), 404, mimetype="text/html")
    response.headers.update(_HEADERS)
    return response

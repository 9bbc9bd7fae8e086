"""Serves the reference for merchants' developers: the OpenAPI document, a page and a Postman collection.

All of it is public.
"""

from collections.abc import Callable
from functools import cache

from flask import Blueprint, Response, json, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from services.api.openapi.arabic import make_arabic_page, translate
from services.api.openapi.document import Document
from services.api.openapi.markdown import render_inline
from services.api.openapi.page import ReferencePage, make_page
from services.api.openapi.postman import make_collection
from shared.platform.web.languages import LANGUAGES

# The page needs its own stylesheet, script and icon only, so browsers should allow nothing else.
_SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_CACHED = "public, max-age=300"


def reference_blueprint(make_document: Callable[[], Document], document_path: str) -> Blueprint:
    """Create the routes. Each page is made when it is first asked for: a worker that starts answers payments sooner."""
    routes = Blueprint("reference", __name__)
    routes.add_app_template_filter(render_inline, "inline")
    document = cache(make_document)

    @cache
    def encoded() -> bytes:
        return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()

    @cache
    def contents(lang: str) -> ReferencePage:
        return make_page(document()) if lang == "en" else make_arabic_page(contents("en"))

    @routes.get(document_path)
    def openapi_document() -> Response:
        return _cached(Response(encoded(), content_type="application/json"))

    @routes.get("/docs/postman.json")
    def postman_collection() -> Response:
        collection = json.dumps(make_collection(document()), ensure_ascii=False, indent=2)
        return _cached(Response(collection, content_type="application/json"))

    @routes.get("/docs")
    def page() -> Response:
        lang = _language()
        html = render_template(
            "reference.html",
            page=contents(lang),
            lang=lang,
            direction=LANGUAGES[lang],
            other_lang="en" if lang == "ar" else "ar",
            t=translate if lang == "ar" else str,
        )
        response = _cached(Response(html, mimetype="text/html"))
        response.vary.add("Accept-Language")
        return response

    @routes.get("/")
    def front() -> BaseResponse:
        return redirect(url_for("reference.page"))

    @routes.after_request
    def secured(response: Response) -> Response:
        response.headers.update(_SECURITY_HEADERS)
        return response

    return routes


def _language() -> str:
    """Return what the address asks for, or else what the browser prefers, or else English."""
    asked = request.args.get("lang")
    # Werkzeug's own choice would prefer "en" to "ar-LY", because it is an exact match.
    preferred = [tag.partition("-")[0].lower() for tag in request.accept_languages.values()]
    return next((lang for lang in (asked, *preferred) if lang in LANGUAGES), "en")


def _cached(response: Response) -> Response:
    response.headers["Cache-Control"] = _CACHED
    response.add_etag()
    response.make_conditional(request)
    return response

"""Protects pages that people open in a browser: security headers, cookie settings, and CSRF tokens."""

from datetime import timedelta

from flask import Flask, Response, request
from flask_wtf.csrf import CSRFProtect

from shared.platform.encryption import derive_key
from shared.platform.web.static_files import is_static

# Nothing from other origins, no inline script or style, no frame around a page, no form that posts elsewhere.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_ONE_YEAR_S = int(timedelta(days=365).total_seconds())


def protect_pages(app: Flask, public_url: str, session_keys: tuple[str, ...]) -> CSRFProtect:
    """Protect all pages. Return the CSRF protection, to exempt routes of programs from it.

    The first of `session_keys` signs cookies, all of them verify.
    """
    is_https = public_url.startswith("https://")
    signing, *previous = [derive_key(key, f"cookies/{app.name}") for key in session_keys]
    cookie = f"mizan-{app.import_name.rpartition('.')[2]}"
    app.config.update(
        SECRET_KEY=signing,
        SECRET_KEY_FALLBACKS=previous,
        # The prefix makes browsers enforce the other settings. Each service has its own name, because without https
        # browsers send the cookies of one port to all others.
        SESSION_COOKIE_NAME=f"__Host-{cookie}" if is_https else cookie,
        SESSION_COOKIE_SECURE=is_https,
        SESSION_COOKIE_HTTPONLY=True,
        # Not Strict: a link in a mail, and the way back from a bank's page, would arrive without the cookie, and the
        # response would replace it. No GET acts because of the cookie, and forms of other sites arrive without it.
        SESSION_COOKIE_SAMESITE="Lax",
        # Valid for as long as the cookie. We send no referrer, so it cannot be checked.
        WTF_CSRF_TIME_LIMIT=None,
        WTF_CSRF_SSL_STRICT=False,
        # Flask-WTF knows one key only: the last, which stays while a new one is put in front.
        WTF_CSRF_SECRET_KEY=[signing, *previous][-1],
    )

    @app.after_request
    def add_headers(response: Response) -> Response:
        policy = response.headers.get("Content-Security-Policy", _POLICY)  # the documentation has its own
        response.headers.update({**_HEADERS, "Content-Security-Policy": policy})
        if is_https:
            response.headers["Strict-Transport-Security"] = f"max-age={_ONE_YEAR_S}; includeSubDomains"
        if is_static(request.endpoint) and response.status_code == 200:
            # Its address changes with its contents.
            response.headers["Cache-Control"] = f"public, max-age={_ONE_YEAR_S}, immutable"
        else:
            response.headers["Cache-Control"] = "no-store"
        return response

    return CSRFProtect(app)

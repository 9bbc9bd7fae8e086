"""Tells what kind of request this is: a page, a part of one, a background poll or a public asset."""

from flask import abort, redirect, request, url_for
from flask.typing import ResponseReturnValue

from shared.platform.web.static_files import is_static

_SEE_OTHER = 303


def wants_part() -> bool:
    """Return whether our own script asks for a part of a page, which it says with the header X-Part."""
    return "X-Part" in request.headers


def is_background_poll() -> bool:
    """Return whether an open page refreshes itself. The person did nothing, so it does not prolong their session."""
    return request.method == "GET" and wants_part()


def next_path() -> str:
    """Return where the person wanted to go before they signed in: a path on this site, or an empty string."""
    wanted = request.values.get("next", "")
    is_path = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_path and "\\" not in wanted else ""


def client_address() -> str:
    return request.remote_addr or ""


def is_public_asset() -> bool:
    """Return whether nobody needs to be signed in: static files, operations endpoints, documentation, unknown ones."""
    return (
        request.endpoint is None
        or is_static(request.endpoint)
        or request.blueprint in ("operations", "documentation")
    )


def redirect_to_sign_in() -> ResponseReturnValue:
    """Redirect a page request to the sign-in form and back afterwards. Abort any other request with 401."""
    is_page = request.method == "GET" and not wants_part()
    if not is_page:
        abort(401)
    return redirect(url_for("people.sign_in", next=request.full_path.rstrip("?")), _SEE_OTHER)

"""What a request says of who asks: our own script, or a person, and where they wanted to go."""

from flask import abort, redirect, request, url_for
from flask.typing import ResponseReturnValue

from shared.platform.web.static_files import is_static

_SEE_OTHER = 303


def wants_part() -> bool:
    """Our own script asks for parts of pages with this header."""
    return "X-Part" in request.headers


def is_by_itself() -> bool:
    """The page looks whether there is something new; nobody did anything."""
    return request.method == "GET" and wants_part()


def wanted_path() -> str:
    """Where the person wanted to go before they signed in: a path of ours, never another site's."""
    wanted = request.values.get("next", "")
    is_path = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_path and "\\" not in wanted else ""


def address() -> str:
    return request.remote_addr or ""


def is_for_nobody() -> bool:
    """What is the same for everybody, or for those who run the service: who asks does not matter."""
    return request.endpoint is None or is_static(request.endpoint) or request.blueprint == "operations"


def to_sign_in() -> ResponseReturnValue:
    """A page leads to the sign-in and back; whatever else was asked for is refused."""
    is_page = request.method == "GET" and not wants_part()
    if not is_page:
        abort(401)
    return redirect(url_for("people.sign_in", next=request.full_path.rstrip("?")), _SEE_OTHER)

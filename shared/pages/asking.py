"""What a request says of who asks: our own script, or a person, and where they wanted to go."""

from flask import request


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

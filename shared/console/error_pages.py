"""Error pages. Their texts are shared; each service adds those that only it needs."""

from collections.abc import Callable, Mapping

from flask import Flask, render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import LazyString
from flask_babel import lazy_gettext as _
from flask_wtf.csrf import CSRFError
from werkzeug import exceptions

from shared.console.requests import wants_part
from shared.domain.accounts.passwords import TooManyPasswordChecksError
from shared.platform.web.errors import register_html_errors
from shared.platform.web.health import OPERATIONS_PATHS

ErrorText = tuple[LazyString, LazyString]
"""A title, and what the person can do."""
ErrorPage = Callable[[exceptions.HTTPException | None], str]

UNAVAILABLE_DURING_CHANGE: ErrorText = (
    _("We cannot answer at the moment"),
    _("What you asked for may have been done, or not. Check before you do it again."),
)
_OTHER: ErrorText = _("This did not work"), _("Nothing was changed. Go back and try again.")
_COMMON: dict[type[exceptions.HTTPException], ErrorText] = {
    CSRFError: (
        _("This page was open for too long"),
        _("What you entered was not sent. Go back, open the page again, and allow cookies for it."),
    ),
    exceptions.NotFound: (
        _("There is no such page"),
        _("It may have been removed, or it never existed."),
    ),
    exceptions.Unauthorized: (
        _("You are not signed in"),
        _("Your session has ended. Sign in again; nothing was changed."),
    ),
}


def is_for_program() -> bool:
    """Return whether a program reads the response, so that errors are JSON instead of pages."""
    return request.path in OPERATIONS_PATHS or wants_part()


def render_error_page(error_text: ErrorText) -> str:
    title, text = error_text
    return render_template("error.html", title=title, text=text)


def make_error_page(
    unavailable: ErrorText, own_texts: Mapping[type[exceptions.HTTPException], ErrorText] | None = None
) -> ErrorPage:
    """Return a function that renders the page of an HTTP error.

    `unavailable` is shown for 503, and for None, when the request only reads. When it was to change something, the page
    says instead that the change may have happened.
    """
    texts = {**_COMMON, **(own_texts or {})}

    def error_page(error: exceptions.HTTPException | None) -> str:
        if error is None or isinstance(error, exceptions.ServiceUnavailable):
            return render_error_page(unavailable if request.method == "GET" else UNAVAILABLE_DURING_CHANGE)
        matching = (text for kind, text in texts.items() if isinstance(error, kind))
        return render_error_page(next(matching, _OTHER))

    return error_page


def register_error_pages(app: Flask, error_page: ErrorPage) -> None:
    """Answer errors with pages, and with 503 while too many passwords are being verified."""
    register_html_errors(app, is_for_program=is_for_program, render_page=error_page)

    @app.errorhandler(TooManyPasswordChecksError)
    def answer_too_many_passwords(_error: TooManyPasswordChecksError) -> ResponseReturnValue:
        return error_page(None), 503, {"Retry-After": "1"}

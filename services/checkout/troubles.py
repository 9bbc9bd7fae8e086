"""Pages for what is no payment: an unknown link, a form that is too old, a server that does not answer."""

from flask import Flask, make_response, render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from flask_wtf.csrf import CSRFError
from werkzeug import exceptions
from werkzeug.wrappers import Response

from services.checkout.language import page_url
from services.checkout.page import Trouble
from shared.db.connections import DatabaseUnavailableError
from shared.web.errors import answer_http_error, answer_outage, answer_unexpected

_FOR_PROGRAMS = (
    "/providers/sandbox/",
    "/providers/plutu/callbacks/",
    "/healthz",
    "/readyz",
    "/metrics",
)


def answer_errors_as_pages(app: Flask) -> None:
    """Programs still get JSON."""

    @app.errorhandler(exceptions.HTTPException)
    def http_error(error: exceptions.HTTPException) -> ResponseReturnValue:
        if request.path.startswith(_FOR_PROGRAMS):
            return answer_http_error(error)
        answer = error.get_response()
        assert isinstance(answer, Response)
        return _as_page(answer, _trouble_of(error))

    @app.errorhandler(DatabaseUnavailableError)
    def outage(error: DatabaseUnavailableError) -> ResponseReturnValue:
        answer = make_response(answer_outage(error))
        return answer if request.path.startswith(_FOR_PROGRAMS) else _as_page(answer, _away())

    @app.errorhandler(Exception)
    def unexpected(error: Exception) -> ResponseReturnValue:
        answer = make_response(answer_unexpected(error))
        return answer if request.path.startswith(_FOR_PROGRAMS) else _as_page(answer, _away())


def _as_page(answer: Response, trouble: Trouble) -> Response:
    answer.data = render_template("trouble.html", trouble=trouble)
    answer.content_type = "text/html; charset=utf-8"
    return answer


def _trouble_of(error: exceptions.HTTPException) -> Trouble:
    if isinstance(error, CSRFError):
        return Trouble(
            _("This page was open for too long"),
            _("What you entered was not sent. Open the payment page again, and allow cookies for it."),
            _again_url(),
        )
    if isinstance(error, exceptions.NotFound):
        return Trouble(
            _("We do not know this link"),
            _("It may be incomplete. Open it again as you received it, or go back to the shop."),
        )
    return Trouble(_("This did not work"), _("Open the payment page again."), _again_url())


def _away() -> Trouble:
    return Trouble(
        _("We cannot answer at the moment"),
        _("If you have just paid, do not pay again: open this page again in a moment to see how it went."),
        _again_url(),
    )


def _again_url() -> str | None:
    if request.endpoint == "providers.customer_returns":
        return request.full_path  # what the bank says through it must not be lost
    intent = (request.view_args or {}).get("intent")
    return None if intent is None else page_url("pages.show", intent=intent)

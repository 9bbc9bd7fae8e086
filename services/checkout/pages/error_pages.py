"""Pages for what is no payment: an unknown link, a form that is too old, a server that does not answer."""

from flask import render_template, request
from flask_babel import gettext as _
from flask_wtf.csrf import CSRFError
from werkzeug import exceptions

from services.checkout.pages.language import page_url
from services.checkout.pages.view_models import ErrorPage
from shared.platform.web.health import OPERATIONS_PATHS

_MACHINE_PATHS = ("/providers/sandbox/", "/providers/plutu/callbacks/", *OPERATIONS_PATHS)


def is_machine_request() -> bool:
    return request.path.startswith(_MACHINE_PATHS)


def render_error_page(error: exceptions.HTTPException | None) -> str:
    """None: we cannot answer at the moment."""
    return render_template("error.html", error_page=_unavailable() if error is None else _error_page(error))


def _error_page(error: exceptions.HTTPException) -> ErrorPage:
    if isinstance(error, CSRFError):
        return ErrorPage(
            _("This page was open for too long"),
            _("What you entered was not sent. Open the payment page again, and allow cookies for it."),
            _retry_url(),
        )
    if isinstance(error, exceptions.NotFound):
        return ErrorPage(
            _("We do not know this link"),
            _("It may be incomplete. Open it again as you received it, or go back to the shop."),
        )
    return ErrorPage(_("This did not work"), _("Open the payment page again."), _retry_url())


def _unavailable() -> ErrorPage:
    return ErrorPage(
        _("We cannot answer at the moment"),
        _("If you have just paid, do not pay again: open this page again in a moment to see how it went."),
        _retry_url(),
    )


def _retry_url() -> str | None:
    if request.endpoint == "providers.customer_returns":
        return request.full_path  # what the bank says through it must not be lost
    intent = (request.view_args or {}).get("intent")
    return None if intent is None else page_url("pages.show", intent=intent)

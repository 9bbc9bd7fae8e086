"""Error pages: an unknown link, an expired form, an unavailable service."""

from flask import render_template, request
from flask_wtf.csrf import CSRFError
from werkzeug import exceptions

from services.checkout.pages.labels import FORM_EXPIRED, OTHER_ERROR, UNAVAILABLE, UNKNOWN_LINK
from services.checkout.pages.language import page_url
from services.checkout.pages.view_models import ErrorPage
from shared.platform.web.health import OPERATIONS_PATHS

_MACHINE_PATHS = ("/providers/sandbox/", "/providers/plutu/callbacks/", *OPERATIONS_PATHS)


def is_machine_request() -> bool:
    return request.path.startswith(_MACHINE_PATHS)


def render_error_page(error: exceptions.HTTPException | None) -> str:
    """Render the page of an error. None means that the service is unavailable."""
    return render_template("error.html", error_page=_error_page(error))


def _error_page(error: exceptions.HTTPException | None) -> ErrorPage:
    if error is None:
        title, text = UNAVAILABLE
    elif isinstance(error, CSRFError):
        title, text = FORM_EXPIRED
    elif isinstance(error, exceptions.NotFound):
        title, text = UNKNOWN_LINK
    else:
        title, text = OTHER_ERROR
    retry_url = None if isinstance(error, exceptions.NotFound) else _retry_url()
    return ErrorPage(str(title), str(text), retry_url)


def _retry_url() -> str | None:
    if request.endpoint == "providers.customer_returns":
        return request.full_path  # keeps the signed parameters of the bank
    intent = (request.view_args or {}).get("intent")
    return None if intent is None else page_url("pages.show", intent=intent)

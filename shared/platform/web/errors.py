"""Error responses: JSON for programs, pages for people."""

import json
from collections.abc import Callable

import structlog
from flask import Flask, make_response, request
from flask.typing import ResponseReturnValue
from werkzeug import exceptions
from werkzeug.wrappers import Response

from shared.platform.database.connections import DatabaseUnavailableError
from shared.platform.encryption import KeysUnavailableError

log = structlog.get_logger(__name__)


UNAVAILABLE_MESSAGE = "The service is temporarily unavailable. Please try again."


class ServiceUnavailable(exceptions.ServiceUnavailable):
    """A dependency does not answer; the caller should retry after `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(UNAVAILABLE_MESSAGE, retry_after=retry_after)


def register_json_errors(app: Flask) -> None:
    app.register_error_handler(DatabaseUnavailableError, outage_response)
    app.register_error_handler(KeysUnavailableError, outage_response)
    app.register_error_handler(exceptions.HTTPException, json_error_response)
    app.register_error_handler(Exception, unexpected_error_response)


def json_error_response(error: exceptions.HTTPException) -> ResponseReturnValue:
    # The error's own response has Allow, Retry-After and the like. Redirects never get here.
    response = error.get_response()
    assert isinstance(response, Response)
    response.data = json.dumps({"message": _message(error)})
    response.content_type = "application/json"
    return response


def _message(error: exceptions.HTTPException) -> str:
    is_default = error.description is None or error.description == type(error).description
    return error.name if is_default else str(error.description)


def outage_response(error: DatabaseUnavailableError | KeysUnavailableError) -> ResponseReturnValue:
    what = "keys unavailable" if isinstance(error, KeysUnavailableError) else "database unavailable"
    log.warning(what, reason=str(error))
    return json_error_response(ServiceUnavailable(retry_after=1))


def unexpected_error_response(error: Exception) -> ResponseReturnValue:
    route = request.url_rule.rule if request.url_rule else None
    log.error("request failed", method=request.method, route=route, exc_info=error)
    return {"message": "Internal Server Error"}, 500


def register_html_errors(
    app: Flask,
    *,
    is_for_program: Callable[[], bool],
    render_page: Callable[[exceptions.HTTPException | None], str],
) -> None:
    """Answer errors with pages, except for requests of programs (`is_for_program`).

    `render_page` gets the HTTP error, or None if the service cannot answer at the moment.
    """

    @app.errorhandler(exceptions.HTTPException)
    def http_error(error: exceptions.HTTPException) -> ResponseReturnValue:
        if is_for_program():
            return json_error_response(error)
        response = error.get_response()
        assert isinstance(response, Response)
        return _as_page(response, render_page(error))

    @app.errorhandler(KeysUnavailableError)
    @app.errorhandler(DatabaseUnavailableError)
    def outage(error: DatabaseUnavailableError | KeysUnavailableError) -> ResponseReturnValue:
        response = make_response(outage_response(error))
        return response if is_for_program() else _as_page(response, render_page(None))

    @app.errorhandler(Exception)
    def unexpected(error: Exception) -> ResponseReturnValue:
        response = make_response(unexpected_error_response(error))
        return response if is_for_program() else _as_page(response, render_page(None))


def _as_page(response: Response, page: str) -> Response:
    response.data = page
    response.content_type = "text/html; charset=utf-8"
    return response

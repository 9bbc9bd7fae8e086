"""Answers errors to people as pages, and to programs as JSON still."""

import json
from collections.abc import Callable

import structlog
from flask import Flask, make_response, request
from flask.typing import ResponseReturnValue
from werkzeug import exceptions
from werkzeug.wrappers import Response

from shared.platform.database.connections import DatabaseUnavailableError

log = structlog.get_logger(__name__)


class ServiceUnavailable(exceptions.ServiceUnavailable):
    """Something we depend on does not answer; the caller should come back in `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("The service is temporarily unavailable. Please try again.", retry_after=retry_after)


def answer_errors_as_json(app: Flask) -> None:
    app.register_error_handler(DatabaseUnavailableError, answer_outage)
    app.register_error_handler(exceptions.HTTPException, answer_http_error)
    app.register_error_handler(Exception, answer_unexpected)


def answer_http_error(error: exceptions.HTTPException) -> ResponseReturnValue:
    # The error's own answer carries Allow, Retry-After and the like. Redirects never come here.
    answer = error.get_response()
    assert isinstance(answer, Response)
    answer.data = json.dumps({"message": _message(error)})
    answer.content_type = "application/json"
    return answer


def _message(error: exceptions.HTTPException) -> str:
    is_default = error.description is None or error.description == type(error).description
    return error.name if is_default else str(error.description)


def answer_outage(error: DatabaseUnavailableError) -> ResponseReturnValue:
    log.warning("database unavailable", reason=str(error))
    return answer_http_error(ServiceUnavailable(retry_after=1))


def answer_unexpected(error: Exception) -> ResponseReturnValue:
    route = request.url_rule.rule if request.url_rule else None
    log.error("request failed", method=request.method, route=route, exc_info=error)
    return {"message": "Internal Server Error"}, 500


def answer_errors_as_pages(
    app: Flask,
    *,
    is_for_program: Callable[[], bool],
    page_of: Callable[[exceptions.HTTPException | None], str],
) -> None:
    """`is_for_program` judges the request, `page_of` makes the page: of None where we cannot answer at the moment."""

    @app.errorhandler(exceptions.HTTPException)
    def http_error(error: exceptions.HTTPException) -> ResponseReturnValue:
        if is_for_program():
            return answer_http_error(error)
        answer = error.get_response()
        assert isinstance(answer, Response)
        return _as_page(answer, page_of(error))

    @app.errorhandler(DatabaseUnavailableError)
    def outage(error: DatabaseUnavailableError) -> ResponseReturnValue:
        answer = make_response(answer_outage(error))
        return answer if is_for_program() else _as_page(answer, page_of(None))

    @app.errorhandler(Exception)
    def unexpected(error: Exception) -> ResponseReturnValue:
        answer = make_response(answer_unexpected(error))
        return answer if is_for_program() else _as_page(answer, page_of(None))


def _as_page(answer: Response, page: str) -> Response:
    answer.data = page
    answer.content_type = "text/html; charset=utf-8"
    return answer

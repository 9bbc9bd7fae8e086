"""Answers errors to people as pages, and to programs as JSON still."""

from collections.abc import Callable

from flask import Flask, make_response
from flask.typing import ResponseReturnValue
from werkzeug import exceptions
from werkzeug.wrappers import Response

from shared.db.connections import DatabaseUnavailableError
from shared.web.errors import answer_http_error, answer_outage, answer_unexpected


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

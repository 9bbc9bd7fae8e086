"""Answers every error as JSON with a message, and tells the log, not the caller, what went wrong inside."""

import json

import structlog
from flask import Flask, request
from flask.typing import ResponseReturnValue
from werkzeug import exceptions
from werkzeug.wrappers import Response

from shared.db.connections import DatabaseUnavailableError

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

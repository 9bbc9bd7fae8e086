"""Gives every request an id: on its answer, on its log lines, and the caller's own if that is sane."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog
from flask import request

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

REQUEST_ID_HEADER = "X-Request-Id"
_ENVIRON_KEY = "mizan.request_id"
_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Wraps the whole application, so that no answer is without an id, whatever fails inside."""

    def __init__(self, app: "WSGIApplication") -> None:
        self._app = app

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        request_id = _sane_or_new(environ.get("HTTP_X_REQUEST_ID", ""))
        environ[_ENVIRON_KEY] = request_id

        def start_with_id(
            status: str,
            headers: list[tuple[str, str]],
            exc_info: "OptExcInfo | None" = None,
        ) -> Callable[[bytes], object]:
            others = [header for header in headers if header[0].lower() != REQUEST_ID_HEADER.lower()]
            return start_response(status, [*others, (REQUEST_ID_HEADER, request_id)], exc_info)

        with _only_context(request_id=request_id):
            return self._app(environ, start_with_id)


def current_request_id() -> str:
    """The id of the request being answered."""
    request_id: str = request.environ[_ENVIRON_KEY]
    return request_id


def _sane_or_new(given: str) -> str:
    return given if _SANE.fullmatch(given) else uuid.uuid4().hex


@contextmanager
def _only_context(**ids: str) -> Iterator[None]:
    """A fresh log context: what a request leaves bound must not reach the thread's next one."""
    before = structlog.contextvars.get_contextvars()
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**ids)
    try:
        yield
    finally:
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(**before)

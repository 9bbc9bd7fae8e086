"""Gives every request an id: on its answer, on its log lines, and the caller's own if that is sane."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flask import request
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

REQUEST_ID_HEADER = "X-Request-Id"
_ENVIRON_KEY = "mizan.request_id"
_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id_of(environ: "WSGIEnvironment") -> str:
    """The caller's id or a new one, kept in the environment too."""
    given = environ.get("HTTP_X_REQUEST_ID", "")
    request_id: str = given if _SANE.fullmatch(given) else secrets.token_hex(16)
    environ[_ENVIRON_KEY] = request_id
    return request_id


def current_request_id() -> str:
    """The id of the request being answered."""
    request_id: str = request.environ[_ENVIRON_KEY]
    return request_id


@contextmanager
def only_context(**ids: str) -> Iterator[None]:
    """A fresh log context: what a request leaves bound must not reach the thread's next one."""
    before = get_contextvars()
    if before:
        clear_contextvars()
    bind_contextvars(**ids)
    try:
        yield
    finally:
        clear_contextvars()
        if before:
            bind_contextvars(**before)

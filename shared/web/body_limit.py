"""Holds bodies that come in chunks, without a length, to the same limit as all others.

Werkzeug cuts those off at the limit and says nothing, so half a body would be taken for a whole one.
"""

import io
from typing import IO, TYPE_CHECKING

from flask import Request
from werkzeug.utils import cached_property

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class LimitedRequest(Request):
    """Reads nothing before a view asks for the body: who may not send one cannot hold a thread with it."""

    @cached_property
    def stream(self) -> IO[bytes]:
        _read_chunks(self.environ, self.max_content_length)
        stream: IO[bytes] = super().stream
        return stream


def _read_chunks(environ: "WSGIEnvironment", limit: int | None) -> None:
    """Gives a body that came in chunks its length; where it is over the limit, Werkzeug refuses it for that."""
    if limit is not None and environ.get("HTTP_TRANSFER_ENCODING") and not environ.get("CONTENT_LENGTH"):
        body = environ["wsgi.input"].read(limit + 1)
        del environ["HTTP_TRANSFER_ENCODING"]
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))

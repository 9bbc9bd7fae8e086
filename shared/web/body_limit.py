"""Holds bodies that come in chunks, without a length, to the same limit as all others.

Werkzeug cuts those off at the limit and says nothing, so half a body would be taken for a whole one.
"""

import io

from flask import Flask, request
from werkzeug.exceptions import RequestEntityTooLarge


def limit_chunked_bodies(app: Flask) -> None:
    @app.before_request
    def read_within_limit() -> None:
        environ, limit = request.environ, request.max_content_length
        if limit is None or environ.get("CONTENT_LENGTH") or not environ.get("HTTP_TRANSFER_ENCODING"):
            return
        body = environ["wsgi.input"].read(limit + 1)
        if len(body) > limit:
            raise RequestEntityTooLarge
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))

"""Holds bodies that come in chunks, without a length, to the same limit as all others.

Werkzeug cuts those off at the limit and says nothing, so half a body would be taken for a whole one.
"""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


def read_chunked_body(environ: "WSGIEnvironment", limit: int) -> None:
    """Gives a body that came in chunks its length; where it is over the limit, Werkzeug refuses it for that."""
    if environ.pop("HTTP_TRANSFER_ENCODING", None) and not environ.get("CONTENT_LENGTH"):
        body = environ["wsgi.input"].read(limit + 1)
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))

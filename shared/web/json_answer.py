"""An answer whose body is encoded already and depends on nothing in the request."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class JsonAnswer(Response):
    """Goes out as it is: without looks at ranges and redirects, and as a list, which servers send in one piece."""

    def __init__(self, body: bytes, status: int) -> None:
        super().__init__(status=status, content_type="application/json")
        self.headers["Content-Length"] = str(len(body))
        self.response = [body]

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        start_response(self.status, self.headers.to_wsgi_list())
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [*self.iter_encoded()]

"""Answers successful calls before Flask, whose routing and contexts are most of what such a call costs.

An error met here is passed on: Flask's route raises it again, and the error handlers answer it like any other.
"""

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from services.api.payment_intents import FAST_PATH_ERROR, ApiResponse, PaymentIntents
from shared.platform.web.middleware import ROUTE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_STATUS_LINES = {200: "200 OK", 201: "201 CREATED"}


class FastPath:
    def __init__(
        self, app: "WSGIApplication", base_path: str, intents: PaymentIntents, max_body_bytes: int
    ) -> None:
        self._app = app
        self._intents = intents
        self._create_path = f"{base_path}/payment-intents"
        self._retrieve_path = f"{base_path}/payment-intents/"
        self._retrieve_route = f"{base_path}/payment-intents/<payment_intent>"
        self._max_body_bytes = max_body_bytes

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        response = None
        try:
            response = self._respond(environ)
        except Exception as error:  # noqa: BLE001  none is swallowed: the route raises it again
            environ[FAST_PATH_ERROR] = error
        if response is None:
            return self._app(environ, start_response)
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(response.body)))]
        start_response(_STATUS_LINES[response.status], headers)
        return [response.body]

    def _respond(self, environ: "WSGIEnvironment") -> ApiResponse | None:
        """Return None for requests that Flask has to answer."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method == "GET" and path.startswith(self._retrieve_path):
            uuid = path[len(self._retrieve_path) :]
            response = self._intents.retrieve(self._intents.authenticate(environ), uuid)
            environ[ROUTE] = self._retrieve_route
            return response
        if method == "POST" and path == self._create_path:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            if 0 < length <= self._max_body_bytes:
                application_id = self._intents.authenticate(environ)
                body = environ["wsgi.input"].read(length)
                environ["wsgi.input"] = io.BytesIO(body)
                if len(body) < length:
                    return None  # the caller has disconnected; Werkzeug refuses a truncated body
                response = self._intents.create(application_id, body)
                environ[ROUTE] = path
                return response
        return None

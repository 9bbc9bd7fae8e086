"""Answers calls that succeed ahead of Flask, whose routing and contexts are most of what such a call costs.

Trouble met here is handed on: Flask's route raises it, and the error handlers answer it as they answer all others.
"""

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from services.api.payment_intents import TROUBLE, Answer, PaymentIntents
from shared.platform.web.middleware import ROUTE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_STATUS_LINES = {200: "200 OK", 201: "201 CREATED"}


class FastLane:
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
        answer = None
        try:
            answer = self._answer(environ)
        except Exception as trouble:  # noqa: BLE001  none is swallowed: the route raises it again
            environ[TROUBLE] = trouble
        if answer is None:
            return self._app(environ, start_response)
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(answer.body)))]
        start_response(_STATUS_LINES[answer.status], headers)
        return [answer.body]

    def _answer(self, environ: "WSGIEnvironment") -> Answer | None:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method == "GET" and path.startswith(self._retrieve_path):
            uuid = path[len(self._retrieve_path) :]
            answer = self._intents.retrieve(self._intents.caller(environ), uuid)
            environ[ROUTE] = self._retrieve_route
            return answer
        if method == "POST" and path == self._create_path:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            if 0 < length <= self._max_body_bytes:
                application_id = self._intents.caller(environ)
                body = environ["wsgi.input"].read(length)
                environ["wsgi.input"] = io.BytesIO(body)
                if len(body) < length:
                    return None  # the caller has gone; Werkzeug refuses what is cut off
                answer = self._intents.create(application_id, body)
                environ[ROUTE] = path
                return answer
        return None

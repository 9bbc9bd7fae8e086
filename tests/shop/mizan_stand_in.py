"""A stand-in for Mizan: the two calls of its API over HTTP, controlled by the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from flask import Flask, request
from flask.typing import ResponseReturnValue

from stack.ports import find_free_ports
from tests.servers import serve


@dataclass
class MizanStandIn:
    port: int = field(default_factory=lambda: find_free_ports(1)[0])
    intents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By uuid."""
    creates: list[str] = field(default_factory=list)
    """The reference of each create request."""
    requested_paths: list[str] = field(default_factory=list)
    """The path of each request."""
    access_token: str = "at_of-the-shop"
    responds_to_creates: bool = True
    """False: requests are executed, but their responses are lost."""
    is_unavailable: bool = False
    refuses_creates: bool = False
    """True: creates are answered with 422."""
    next_amount: int | None = None
    checkout: str = "https://pay.example"

    @property
    def origin(self) -> str:
        """Its URL. It also serves an empty checkout page."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/api/v1"

    def only_intent(self) -> dict[str, Any]:
        (intent,) = self.intents.values()
        return intent

    @contextmanager
    def running(self) -> Iterator["MizanStandIn"]:
        app = Flask(__name__)
        app.before_request(self._check_token)
        app.post("/api/v1/payment-intents")(self._create)
        app.get("/api/v1/payment-intents/<uuid>")(self._retrieve)
        app.get("/pay/<uuid>")(lambda uuid: f"<!doctype html><title>{uuid}</title>")
        with serve(app, self.port):
            yield self

    def _check_token(self) -> ResponseReturnValue | None:
        self.requested_paths.append(request.path)
        is_known = request.headers.get("Authorization") == f"Bearer {self.access_token}"
        is_api = request.path.startswith("/api/")
        return None if is_known or not is_api else ({"message": "The access token is not valid."}, 401)

    def _create(self) -> ResponseReturnValue:
        if self.is_unavailable:
            return {"message": "unavailable"}, 503
        if self.refuses_creates:
            return {"message": "Not valid.", "errors": {"amount": ["Too small."]}}, 422
        body = request.get_json()
        self.creates.append(body["merchant_reference"])
        known = [one for one in self.intents.values() if one["merchant_reference"] == self.creates[-1]]
        intent = known[0] if known else self._new(body)
        return ({"data": intent}, 201) if self.responds_to_creates else ({"message": "lost"}, 502)

    def _new(self, body: dict[str, Any]) -> dict[str, Any]:
        uuid = str(uuid4())
        self.intents[uuid] = {
            "uuid": uuid,
            "merchant_reference": body["merchant_reference"],
            "amount": self.next_amount or body["amount"],
            "currency": body["currency"],
            "status": "requires_payment_method",
            "return_url": body["return_url"],
            "checkout_url": f"{self.checkout}/pay/{uuid}",
            "expires_at": "2030-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
        }
        return self.intents[uuid]

    def _retrieve(self, uuid: str) -> ResponseReturnValue:
        if self.is_unavailable:
            return {"message": "unavailable"}, 503
        return {"data": self.intents[uuid]} if uuid in self.intents else ({"message": "none"}, 404)

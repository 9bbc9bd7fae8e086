"""A stand-in for Mizan's API that can be made to hang, to drop connections and to fail."""

import json
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self
from uuid import uuid4

DROP_CONNECTION = 0


class StandInApi:
    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.intents: dict[str, dict[str, Any]] = {}
        self.creates: list[dict[str, Any]] = []
        self.retrieved: list[str] = []
        self.failures: deque[int] = deque()
        """What the next requests get instead of a response: an error status, or DROP_CONNECTION."""
        self.responds = Event()
        self.reset()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/api/v1"

    def reset(self) -> None:
        for kept in (self.intents, self.creates, self.retrieved, self.failures):
            kept.clear()
        self.responds.set()

    def intent(self, reference: str, amount: int, status: str) -> str:
        uuid = str(uuid4())
        self.intents[uuid] = {
            "uuid": uuid,
            "merchant_reference": reference,
            "amount": amount,
            "currency": "LYD",
            "status": status,
            "checkout_url": f"https://pay.example/pay/{uuid}",
        }
        return uuid

    def create(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.creates.append(body)
        reference = body["merchant_reference"]
        for intent in self.intents.values():
            if intent["merchant_reference"] == reference:
                return 200, {"data": intent}
        uuid = self.intent(reference, body["amount"], "requires_payment_method")
        return 201, {"data": self.intents[uuid]}

    def retrieve(self, uuid: str) -> tuple[int, dict[str, Any]]:
        self.retrieved.append(uuid)
        found = self.intents.get(uuid)
        return (
            (404, {"message": "There is no payment intent with this uuid."})
            if found is None
            else (200, {"data": found})
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.responds.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler_of(api: StandInApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(lambda: api.retrieve(self.path.rpartition("/")[2]))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(lambda: api.create(body))

        def _answer(self, answer: Any) -> None:
            is_known = (self.headers["X-API-Key"], self.headers["Authorization"]) == (
                "pk_shop",
                "Bearer at_shop",
            )
            assert is_known, self.headers
            assert api.responds.wait(20)
            failure = api.failures.popleft() if api.failures else None
            if failure == DROP_CONNECTION:
                return
            status, content = answer() if failure is None else (failure, {"message": "Failure."})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: object) -> None:
            pass

    return Handler

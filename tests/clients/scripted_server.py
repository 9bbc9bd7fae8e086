"""A local HTTP server that gives the responses of clients/cases.json, and records the requests."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self

Step = Mapping[str, Any]
"""A response (`status`, `headers`, and `json`, `body`, `body_hex` or `intent`), or `close` or `hang`.

`padding` adds spaces to `json`; `truncate` closes the connection within the body.
"""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Script:
    """What the requests to one base URL get, one step for each request."""

    steps: Sequence[Step]
    requests: list[Request] = field(default_factory=list)

    def next_step(self, request: Request) -> Step:
        self.requests.append(request)
        number = len(self.requests)
        return self.steps[number - 1] if number <= len(self.steps) else {"status": 599}


class ScriptedServer:
    def __init__(self, intent: Mapping[str, Any]) -> None:
        self.intent = intent
        self.ends = Event()
        self.scripts: list[Script] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def add(self, steps: Sequence[Step]) -> tuple[str, Script]:
        """Return a base URL that gives these responses, and its script, which records the requests."""
        self.scripts.append(Script(steps))
        return (
            f"http://127.0.0.1:{self._server.server_address[1]}/{len(self.scripts) - 1}/api/v1",
            self.scripts[-1],
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _body_of(step: Step, intent: Mapping[str, Any]) -> bytes:
    if "json" in step:
        return json.dumps(step["json"]).encode() + b" " * int(step.get("padding", 0))
    if "intent" in step:
        return json.dumps({"data": intent}).encode()
    return bytes.fromhex(step["body_hex"]) if "body_hex" in step else str(step.get("body", "")).encode()


def _handler_of(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._play()

        def do_POST(self) -> None:
            self._play()

        def _play(self) -> None:
            _, number, path = self.path.split("/", 2)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            step = server.scripts[int(number)].next_step(Request(self.command, f"/{path}", headers, body))
            if "hang" in step:
                server.ends.wait(60)
            elif "close" not in step:
                self._respond(step)

        def _respond(self, step: Step) -> None:
            content = _body_of(step, server.intent)
            self.send_response(step["status"])
            for name, value in step.get("headers", {}).items():
                self.send_header(name, value)
            if step["status"] != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):  # a client does not read a huge body to its end
                self.wfile.write(content[: len(content) // 2] if "truncate" in step else content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler

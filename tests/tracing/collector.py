"""An OTLP collector on loopback: receives spans as protobuf over HTTP, or misbehaves as configured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class ExportedSpan:
    """A span as the collector received it."""

    service: str
    name: str
    trace_id: str
    path: str
    headers: Mapping[str, str] = field(repr=False)


class Collector:
    def __init__(self) -> None:
        self.status = 200
        self.hangs = False
        self.requests = 0
        self.spans: list[ExportedSpan] = []
        self._over = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def of(self, service: str) -> list[ExportedSpan]:
        return [span for span in self.spans if span.service == service]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        self.requests += 1
        if self.hangs:
            self._over.wait()
        if self.status != 200:
            return
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.spans += [
                ExportedSpan(names["service.name"], span.name, span.trace_id.hex(), path, headers)
                for scope in resource.scope_spans
                for span in scope.spans
            ]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector._take(self.path, dict(self.headers), body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        return Handler

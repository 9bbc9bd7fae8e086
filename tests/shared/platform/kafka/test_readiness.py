"""The readiness check for Kafka while the controller considers all brokers dead, as on a machine that is overloaded."""

import struct
import subprocess
import sys
from collections.abc import Iterator
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread

import pytest

_API_VERSIONS, _METADATA = 18, 3
_ALL_TOPICS = -1
_UNSUPPORTED_VERSION = 35
_CHECK_TWICE = """
import sys
from types import MappingProxyType
from shared.platform.kafka.admin import KafkaReadiness
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings

readiness = KafkaReadiness(KafkaSettings(sys.argv[1], "", 1, MappingProxyType({})))
readiness.check()
print("ready", flush=True)
input()
try:
    readiness.check()
except KafkaUnavailableError as error:
    print(error)
"""


class FencedBroker(ThreadingTCPServer):
    """Answers ApiVersions and Metadata requests as Kafka does. Once it is fenced, its metadata name no broker."""

    daemon_threads = True
    is_fenced = False

    def answer(self, api: int, version: int, body: bytes) -> bytes:
        if api == _API_VERSIONS:  # as version 0, which the client falls back to
            supported = struct.pack(">i6h", 2, _API_VERSIONS, 0, 0, _METADATA, 0, 2)
            return struct.pack(">h", _UNSUPPORTED_VERSION if version else 0) + supported
        brokers = struct.pack(">i", 0) if self.is_fenced else struct.pack(">i", 1) + self._broker()
        controller = -1 if self.is_fenced else 1
        return brokers + _text(b"cluster") + struct.pack(">i", controller) + _topics(body)

    def _broker(self) -> bytes:
        host, port = self.server_address[:2]
        return struct.pack(">i", 1) + _text(str(host).encode()) + struct.pack(">ih", port, -1)


def _topics(request: bytes) -> bytes:
    """Return one topic without partitions if all topics were asked for, else none."""
    (asked,) = struct.unpack(">i", request[:4])
    topic = struct.pack(">h", 0) + _text(b"work") + struct.pack(">?i", False, 0)
    return struct.pack(">i", 1) + topic if asked == _ALL_TOPICS else struct.pack(">i", 0)


def _text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


class Connection(BaseRequestHandler):
    server: FencedBroker

    def handle(self) -> None:
        stream = self.request.makefile("rwb")
        while size := stream.read(4):
            request = stream.read(*struct.unpack(">i", size))
            api, version, correlation, client_id = struct.unpack(">hhih", request[:10])
            body = self.server.answer(api, version, request[10 + client_id :])
            stream.write(struct.pack(">ii", 4 + len(body), correlation) + body)
            stream.flush()


@pytest.fixture
def broker() -> Iterator[FencedBroker]:
    with FencedBroker(("127.0.0.1", 0), Connection) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_process_survives_a_cluster_without_brokers(broker: FencedBroker) -> None:
    """Regression: librdkafka aborted the process that asked. It runs in its own, so as not to end this one."""
    host, port = broker.server_address[:2]
    with subprocess.Popen(
        [sys.executable, "-c", _CHECK_TWICE, f"{host!s}:{port}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        broker.is_fenced = True
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "no broker is available\n"
    assert process.returncode == 0

"""A real gunicorn with two workers: metrics add up over workers, also if one is killed."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY, create_connection
from time import monotonic

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.waiting import eventually

pytestmark = pytest.mark.stack

ROOT = Path(__file__).parents[4]
MODULE = "tests.shared.platform.web.counting_service"


class Service:
    """The running service; a thread reads its log."""

    def __init__(self, metrics_dir: Path, *options: str) -> None:
        metrics_dir.mkdir()
        (metrics_dir / "counter_1.db").write_bytes(b"stale")  # would break /metrics if it stayed
        env = shutil.which("env")
        assert env
        self.process = subprocess.Popen(
            [
                env,
                f"PROMETHEUS_MULTIPROC_DIR={metrics_dir}",
                sys.executable,
                "-m",
                MODULE,
                str(metrics_dir),
                *options,
            ],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, object]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.port = int(eventually(self._listening_at).rpartition(":")[2].split()[0])

    def _read(self) -> None:
        assert self.process.stderr
        with self.process.stderr as log:
            self.lines.extend(json.loads(line) for line in log)

    def _listening_at(self) -> str:
        return next((str(line["event"]) for line in self.lines if "Listening at" in str(line["event"])), "")

    def get(self, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path, headers=headers | {"Connection": "close"})
        return connection.getresponse()

    def get_pid(self, _number: int = 0) -> int:
        with self.get("/pid?secret=in-the-query") as answer:
            return int(json.load(answer)["pid"])

    def counted(self) -> float:
        with self.get("/metrics") as answer:
            families = text_string_to_metric_families(answer.read().decode())
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == "mizan_http_requests_total" and sample.labels["route"] == "/pid"
        )

    def workers(self) -> set[int]:
        return {child.pid for child in psutil.Process(self.process.pid).children()}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._reader.join()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path / "metrics")
    yield service
    service.stop()


@pytest.mark.kills
def test_metrics_add_up_over_workers_and_survive_a_killed_one(service: Service) -> None:
    """/metrics of any worker reports the counts of all, including killed ones."""
    with ThreadPoolExecutor(8) as callers:
        pids = list(callers.map(service.get_pid, range(300)))
        while len(set(pids)) < 2:
            pids.append(service.get_pid())
    assert {service.counted() for _ in range(10)} == {len(pids)}

    victim = pids[0]
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: victim not in service.workers() and len(service.workers()) == 2)
    with ThreadPoolExecutor(8) as callers:
        more = list(callers.map(service.get_pid, range(100)))
    assert {service.counted() for _ in range(10)} == {len(pids) + len(more)}


def test_access_log_has_the_request_id_and_no_query(service: Service) -> None:
    """Gunicorn's lines go through our logging: one line per request, none for probes."""
    with service.get("/pid?secret=in-the-query", **{"X-Request-Id": "r-1"}):
        pass
    with service.get("/healthz"):
        pass
    with service.get("/nowhere"):
        pass
    told = eventually(lambda: [line for line in service.lines if line.get("path") == "/nowhere"])
    assert told[0]["status"] == 404
    (line,) = [line for line in service.lines if line.get("path") == "/pid"]
    assert (line["logger"], line["event"], line["service"]) == (
        "web.access",
        "request answered",
        "counting",
    )
    assert (line["method"], line["status"], line["request_id"]) == ("GET", 200, "r-1")
    assert not [line for line in service.lines if line.get("path") == "/healthz"]
    assert "in-the-query" not in json.dumps(service.lines)
    assert {line["logger"] for line in service.lines} == {"gunicorn.error", "web.access"}


def test_no_header_changes_the_path_or_the_urls(service: Service) -> None:
    """gunicorn would take both from whoever connects from this machine, such as a proxy that passes them on."""
    with service.get("/where", PATH_INFO="/nowhere", SCRIPT_NAME="//evil.example") as answer:
        assert json.load(answer) == {"path": "/where", "url": "/where"}


@pytest.mark.parametrize(("chunks", "status"), [(64, 200), (65, 413)])
def test_chunked_body_is_limited_to_64_kib_too(service: Service, chunks: int, status: int) -> None:
    """The response is JSON, like all errors."""
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)) as connection:
        connection.request("POST", "/size", body=iter([b"x" * 1024] * chunks), encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == status
        assert json.load(answer) == (
            {"size": 65536} if status == 200 else {"message": "Request Entity Too Large"}
        )


HALF_A_REQUEST = [
    pytest.param(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ", id="headers"),
    pytest.param(b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf", id="body"),
    pytest.param(
        b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n0\r\n\r\n\r\n", id="chunks"
    ),
    pytest.param(
        b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 11_000,
        id="many small chunks",
    ),
    pytest.param(
        b"GET /pid HTTP/1.1\r\nHost: x\r\n\r\nGET /pid HTTP/1.1\r\nHost:", id="headers of a second request"
    ),
    pytest.param(
        b"GET /pid HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", id="a request, and never closed"
    ),
    pytest.param(
        b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n", id="a body that is too large"
    ),
]


@pytest.mark.parametrize("sent", HALF_A_REQUEST)
def test_slow_clients_hold_up_no_other(service: Service, sent: bytes) -> None:
    """A hundred clients send it to eight threads and then wait. Each is disconnected after the limit."""
    with ExitStack() as stack:
        slow = [
            stack.enter_context(create_connection(("127.0.0.1", service.port), timeout=60))
            for _ in range(100)
        ]
        for client in slow:
            client.sendall(sent)
        for _ in range(20):
            with service.get("/healthz") as answer:
                assert answer.status == 200
        for client in slow:
            with suppress(ConnectionResetError):
                while client.recv(65536):
                    pass


def test_a_request_that_arrives_in_pieces_is_answered(service: Service) -> None:
    """Byte by byte, headers and body, and then another request on the same connection."""
    head = b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\n\r\n"
    with create_connection(("127.0.0.1", service.port), timeout=10) as client:
        client.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        for _ in range(2):
            for byte in head + b"x" * 300:
                client.sendall(bytes([byte]))
            response = http.client.HTTPResponse(client)
            response.begin()
            assert json.loads(response.read()) == {"size": 300}


def test_the_largest_body_is_waited_for(service: Service) -> None:
    """64 KiB, in two halves: more than the kernel's buffer holds by default."""
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)) as connection:
        connection.request("POST", "/size", body=b"x" * 65536)
        assert json.load(connection.getresponse()) == {"size": 65536}
        connection.putrequest("POST", "/size")
        connection.putheader("Content-Length", "65536")
        connection.endheaders(b"x" * 40_000)
        with service.get("/healthz") as answer:
            assert answer.status == 200
        connection.send(b"x" * 25_536)
        assert json.load(connection.getresponse()) == {"size": 65536}


def test_sigterm_ends_master_and_workers(service: Service) -> None:
    workers = service.workers()
    service.stop()
    assert service.process.returncode == 0
    assert not [pid for pid in workers if psutil.pid_exists(pid)]


def test_sigterm_reaches_workers_that_are_still_starting(tmp_path: Path) -> None:
    """Regression: a signal before a worker had installed its handlers was lost, and the stop took 30 s."""
    service = Service(tmp_path / "metrics", "--slow-boot")
    eventually(lambda: sum("Booting worker" in str(line["event"]) for line in service.lines) == 2)
    started = monotonic()
    service.stop()
    assert service.process.returncode == 0
    assert monotonic() - started < 10

"""What the sandbox asks the API before it pays, and what it makes of each response."""

import json
import socket
from collections.abc import Callable
from threading import Event
from time import monotonic
from uuid import UUID, uuid4

import pytest

from services.sandbox import merchant_access
from services.sandbox.merchant_access import AccessRefusedError, ApiUnavailableError, check_access
from tests.checkout.test_http_client import listening, says, with_body

INTENT = uuid4()
FOUND = json.dumps({"data": {"uuid": str(INTENT)}}).encode()

Behaviour = Callable[[socket.socket], None]


def check(url: str, intent: UUID = INTENT) -> None:
    check_access(url, intent, "pk_key", "Bearer at_token")


def test_intent_that_the_api_returns_may_be_paid() -> None:
    """It is asked with both headers of the merchant, and no other credentials."""
    received: list[bytes] = []

    def behave(line: socket.socket) -> None:
        received.append(line.recv(65536))
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(FOUND), FOUND))

    with listening(behave) as url:
        check(url)
    head = received[0].decode()
    assert head.startswith(f"GET /api/v1/payment-intents/{INTENT} HTTP/1.1\r\n")
    assert "\r\nX-API-Key: pk_key\r\n" in head
    assert "\r\nAuthorization: Bearer at_token\r\n" in head
    assert "cookie" not in head.lower()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        ("401 Unauthorized", {"error": "The API key is unknown."}, "The API key is unknown."),
        ("401 Unauthorized", {"message": "The token is invalid."}, "The token is invalid."),
        ("403 Forbidden", {"message": "Another application's."}, "Another application's."),
        ("404 Not Found", {"message": "Not Found"}, "Not Found"),
        ("429 Too Many Requests", {"message": "Too many requests."}, "Too many requests."),
        ("404 Not Found", {"message": "x" * 10_000}, "x" * 300),
        ("404 Not Found", {"message": ["no text"]}, "The API refused the request."),
        ("404 Not Found", {}, "The API refused the request."),
    ],
)
def test_refusal_of_the_api_has_its_status_and_message(
    status: str, body: dict[str, object], message: str
) -> None:
    with (
        listening(with_body(json.dumps(body).encode(), status)) as url,
        pytest.raises(AccessRefusedError) as refused,
    ):
        check(url)
    assert (refused.value.status, str(refused.value)) == (int(status[:3]), message)


@pytest.mark.parametrize(
    "behave",
    [
        with_body(b'{"message": "broken"}', "500 Internal Server Error"),
        with_body(FOUND, "503 Service Unavailable"),
        with_body(FOUND, "201 Created"),
        with_body(b"{}", "302 Found\r\nLocation: http://127.0.0.1:1/"),
        with_body(b'{"message": "no"}', "422 Unprocessable Content"),
        with_body(b""),
        with_body(b"<html>"),
        with_body(b"[" * 30_000),
        with_body(b"\xff"),
        with_body(FOUND.replace(b"{", b'{"data": {}, ', 1)),
        with_body(FOUND + b" " * 70_000),
        with_body(b"{}"),
        with_body(b'{"data": [1]}'),
        with_body(json.dumps({"data": {"uuid": str(uuid4())}}).encode()),
        with_body(b"not json", "401 Unauthorized"),
        says(b""),
        says(b"220 mail.example ESMTP\r\n"),
        says(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"),
        says(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"),
    ],
    ids=range(19),
)
def test_anything_else_is_an_unavailable_api(behave: Behaviour) -> None:
    with listening(behave) as url, pytest.raises(ApiUnavailableError) as error:
        check(url)
    assert "pk_key" not in str(error.value)
    assert "at_token" not in str(error.value)


@pytest.mark.parametrize("pace_s", [None, 0.1], ids=["silent", "a byte at a time"])
def test_api_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, pace_s: float | None) -> None:
    """Also if it goes on sending a little, which no timeout of a socket notices."""
    monkeypatch.setattr(merchant_access, "_SOCKET_TIMEOUT_S", 1.0)
    monkeypatch.setattr(merchant_access, "_TOTAL_TIMEOUT_S", 1.5)
    is_over = Event()

    def behave(line: socket.socket) -> None:
        line.recv(65536)
        line.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not is_over.wait(pace_s):
            line.sendall(b"x")

    began = monotonic()
    with listening(behave) as url:
        try:
            with pytest.raises(ApiUnavailableError):
                check(url)
            assert monotonic() - began < 8
        finally:
            is_over.set()

"""The access log: one line for each request, without secrets."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from flask import Flask

from tests.logs import capture_logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    with capture_logs() as stream:
        yield stream


def test_access_log_line_has_no_query_and_no_body(app: Flask, stream: io.StringIO) -> None:
    """It has method, path, status, time and request id."""
    app.test_client().post("/orders?secret=s3cret", data="s3cret", headers={"X-Request-Id": "r-1"})
    line = json.loads(stream.getvalue())
    assert line.pop("ms") >= 0
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "service": "shop",
        "logger": "web.access",
        "event": "request answered",
        "method": "POST",
        "path": "/orders",
        "status": 200,
        "remote_addr": "127.0.0.1",
        "request_id": "r-1",
    }


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/orders/5", "/orders/5"),
        # a uuid is not a secret, and its digits are not a card number
        ("/x/01a1dd9f-fab1-7070-93b7-724d61fc3634", "/x/01a1dd9f-fab1-7070-93b7-724d61fc3634"),
        ("/x/pk_HI112aKy5IiL18fUi7EuGvV6Iu0OCwbB", "/x/pk_[redacted]"),
        ("/x/at_vsZmuz9zQ1piENJSDyF9tLxXmNgHmZR3", "/x/at_[redacted]"),
        ("/x/4242424242424242", "/x/[redacted]"),
        ("/x/4000.0000.0000.9995", "/x/[redacted]"),
        ("/x/4000%0A0000/0000%2F9995", "/x/[redacted]"),
        ("/x/0913632323", "/x/[redacted]"),
        ("/x/password=hush", "/x/password=[redacted]"),
    ],
)
def test_secret_in_the_path_is_not_logged(app: Flask, stream: io.StringIO, path: str, told: str) -> None:
    """A caller may put one there by mistake."""
    app.test_client().get(path)
    assert json.loads(stream.getvalue().splitlines()[-1])["path"] == told


def test_successful_probes_are_not_logged(app: Flask, stream: io.StringIO) -> None:
    """They come every few seconds and have no information."""
    app.test_client().get("/healthz")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("path", ["/broken", "/nowhere", "/busy"])
def test_failed_requests_are_logged(app: Flask, stream: io.StringIO, path: str) -> None:
    """With the status that the caller got."""
    status = app.test_client().get(path).status_code
    assert json.loads(stream.getvalue().splitlines()[-1])["status"] == status


def test_access_log_uses_the_human_format_too(app: Flask) -> None:
    """On a terminal it looks like all other lines."""
    with capture_logs("human") as stream:
        app.test_client().get("/orders/5")
    assert "order read" in stream.getvalue()
    assert "request answered" in stream.getvalue()


def test_access_log_can_be_switched_off_by_level(app: Flask, stream: io.StringIO) -> None:
    """Its lines have level info."""
    logging.getLogger().setLevel("WARNING")
    app.test_client().get("/nowhere")
    assert stream.getvalue() == ""

"""All errors have a JSON body (DESIGN §3)."""

import pytest
from flask import Flask, Response, abort

from tests.shared.platform.web.conftest import LogLines


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/nowhere", 404, "Not Found"),
        ("/abort/400", 400, "Bad Request"),
        ("/abort/401", 401, "Unauthorized"),
        ("/abort/403", 403, "Forbidden"),
        ("/abort/415", 415, "Unsupported Media Type"),
        ("/abort/500", 500, "Internal Server Error"),
        ("/abort/503", 503, "Service Unavailable"),
        ("/broken", 500, "Internal Server Error"),
        ("/explained", 409, "This reference was used before."),  # our own message is kept
    ],
)
def test_error_is_json_with_a_message(app: Flask, path: str, status: int, message: str) -> None:
    """The status is right, and the body is {"message": text} and nothing else."""
    answer = app.test_client().get(path)
    assert answer.status_code == status
    assert answer.content_type == "application/json"
    assert answer.json == {"message": message}


def test_wrong_method_lists_the_allowed_ones(app: Flask) -> None:
    """405 keeps its Allow header."""
    answer = app.test_client().delete("/orders")
    assert answer.status_code == 405
    assert answer.json == {"message": "Method Not Allowed"}
    assert answer.headers["Allow"] == "POST"


def test_cors_preflight_gets_405(app: Flask) -> None:
    """Only servers call us: OPTIONS is not supported and there are no CORS headers."""
    answer = app.test_client().options("/orders", headers={"Origin": "https://shop.example"})
    assert answer.status_code == 405
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]


def test_redirect_is_not_an_error(app: Flask) -> None:
    """The exception that werkzeug raises to redirect is passed through."""
    answer = app.test_client().get("/folder")
    assert answer.status_code == 308
    assert answer.headers["Location"].endswith("/folder/")
    assert answer.content_type.startswith("text/html")


def test_response_passed_to_abort_is_not_changed(app: Flask) -> None:
    """A page that aborts with its own response, such as a form with its errors, keeps it."""

    @app.get("/ready-made")
    def ready_made() -> str:
        abort(Response("try again", 422))

    answer = app.test_client().get("/ready-made")
    assert (answer.status_code, answer.text) == (422, "try again")


@pytest.mark.parametrize(("size", "status"), [(64 * 1024, 200), (64 * 1024 + 1, 413)])
def test_bodies_are_limited_to_64_kib(app: Flask, size: int, status: int) -> None:
    """A body of exactly 64 KiB is accepted, one byte more gets 413."""
    answer = app.test_client().post("/orders", data=b"x" * size)
    assert answer.status_code == status
    assert answer.json == ({"bytes": size} if status == 200 else {"message": "Request Entity Too Large"})


def test_unavailable_has_retry_after(app: Flask) -> None:
    """503 has Retry-After in seconds."""
    answer = app.test_client().get("/busy")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "7"
    assert answer.json == {"message": "The service is temporarily unavailable. Please try again."}


def test_details_of_an_unexpected_error_are_only_logged(app: Flask, log_lines: LogLines) -> None:
    """The log has traceback, route and request id, redacted; the response has no details."""
    answer = app.test_client().get("/broken", headers={"X-Request-Id": "r-1"})
    assert b"card" not in answer.data
    (line,) = log_lines()
    assert (line["event"], line["level"], line["request_id"]) == ("request failed", "error", "r-1")
    assert (line["method"], line["route"]) == ("GET", "/broken")
    assert "RuntimeError: card [redacted] is in the way" in str(line["exception"])


def test_an_expected_error_is_not_logged(app: Flask, log_lines: LogLines) -> None:
    """A mistake of the caller is not our error."""
    app.test_client().get("/nowhere")
    assert log_lines() == []

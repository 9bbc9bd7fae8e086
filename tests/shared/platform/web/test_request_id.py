"""Every response and every log line of a request has its id (DESIGN §3)."""

import re

import pytest
import structlog
from flask import Flask

from shared.platform.web.request_context import current_request_id
from tests.shared.platform.web.conftest import LogLines


@pytest.mark.parametrize("given", ["a", "order-7_retry.2", "A" * 64])
def test_valid_request_id_is_kept(app: Flask, given: str) -> None:
    """The response has the caller's id."""
    answer = app.test_client().get("/orders/1", headers={"X-Request-Id": given})
    assert answer.headers.getlist("X-Request-Id") == [given]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "A" * 65,  # too long
        "two words",
        "semi;colon",
        "٤٢",  # Arabic digits
        '"quoted"',
    ],
)
def test_invalid_request_id_is_replaced(app: Flask, given: str) -> None:
    """Text that could break a log line or a header is never repeated."""
    answer = app.test_client().get("/orders/1", environ_overrides={"HTTP_X_REQUEST_ID": given})
    (made,) = answer.headers.getlist("X-Request-Id")
    assert re.fullmatch(r"[0-9a-f]{32}", made)


def test_every_request_without_an_id_gets_its_own(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/healthz").headers["X-Request-Id"] != client.get("/healthz").headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/healthz"),
        ("GET", "/nowhere"),  # 404
        ("POST", "/orders/1"),  # 405
        ("GET", "/broken"),  # 500
        ("GET", "/busy"),  # 503
        ("GET", "/folder"),  # a redirect
    ],
)
def test_errors_and_redirects_have_the_request_id(app: Flask, method: str, path: str) -> None:
    answer = app.test_client().open(path, method=method, headers={"X-Request-Id": "r-1"})
    assert answer.headers["X-Request-Id"] == "r-1"


def test_only_log_lines_of_the_request_have_its_id(app: Flask, log_lines: LogLines) -> None:
    """Context bound by the request is gone afterwards, and context bound before is restored."""

    @app.get("/binding")
    def binding() -> dict[str, str]:
        structlog.contextvars.bind_contextvars(application_id="a-1")
        structlog.get_logger("shop").info("inside")
        return {"id": current_request_id()}

    with structlog.contextvars.bound_contextvars(before="yes"):
        answer = app.test_client().get("/binding", headers={"X-Request-Id": "r-1"})
        structlog.get_logger("shop").info("outside")
    assert answer.json == {"id": "r-1"}
    inside, outside = log_lines()
    assert (inside["request_id"], inside["application_id"]) == ("r-1", "a-1")
    assert "before" not in inside
    assert not {"request_id", "application_id"} & outside.keys()
    assert outside["before"] == "yes"

"""A web application as a service creates it, and its log lines."""

import json
from collections.abc import Callable, Iterator

import pytest
import structlog
from flask import Flask, abort, request

from shared.platform.web.app import create_app
from shared.platform.web.errors import ServiceUnavailable
from shared.platform.web.middleware import LOGGER
from tests.logs import capture_logs

LogLines = Callable[[], list[dict[str, object]]]


@pytest.fixture
def app() -> Flask:
    app = create_app("shop", checks={})

    @app.get("/orders/<int:number>")
    def order(number: int) -> dict[str, int]:
        structlog.get_logger("shop").info("order read", number=number)
        return {"number": number}

    @app.post("/orders")
    def place() -> dict[str, int]:
        return {"bytes": len(request.get_data())}

    @app.get("/broken")
    def broken() -> str:
        raise RuntimeError("card 4242424242424242 is in the way")

    @app.get("/busy")
    def busy() -> str:
        raise ServiceUnavailable(retry_after=7)

    @app.get("/abort/<int:status>")
    def give_up(status: int) -> str:
        abort(status)

    @app.get("/explained")
    def explained() -> str:
        abort(409, "This reference was used before.")

    @app.get("/folder/")
    def folder() -> str:
        return "inside"

    return app


@pytest.fixture
def log_lines() -> Iterator[LogLines]:
    """Return the lines logged so far, without the access log."""

    def lines() -> list[dict[str, object]]:
        told = [json.loads(line) for line in stream.getvalue().splitlines()]
        return [line for line in told if line["logger"] != LOGGER]

    with capture_logs() as stream:
        yield lines

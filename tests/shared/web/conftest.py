"""An application as a service would make it, and the lines it logs."""

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog
from flask import Flask, abort, request

from shared.logs import configure_logging
from shared.web.access_log import LOGGER
from shared.web.app import create_app
from shared.web.errors import ServiceUnavailable

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
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    configure_logging("shop", "json", "info", stream)
    lines = lambda: [json.loads(line) for line in stream.getvalue().splitlines()]  # noqa: E731
    yield lambda: [line for line in lines() if line["logger"] != LOGGER]
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()

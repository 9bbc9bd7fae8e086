"""A tiny service for test_gunicorn.py; its arguments are METRICS_DIR and optionally --slow-boot.

With --slow-boot its workers start only after they have received a signal.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask, request, url_for

from shared.platform.logs import configure_logging
from shared.platform.web.app import create_app
from shared.platform.web.gunicorn_server import gunicorn_config, serve
from tests.waiting import eventually


def make_app(metrics_dir: Path) -> Flask:
    app = create_app("counting", checks={}, metrics_dir=metrics_dir)

    @app.get("/pid")
    def pid() -> dict[str, int]:
        return {"pid": os.getpid()}

    @app.get("/where")
    def where() -> dict[str, str]:
        return {"path": request.path, "url": url_for("where")}

    @app.post("/size")
    def size() -> dict[str, int]:
        return {"size": len(request.get_data())}

    return app


def slow_to_boot(config: Mapping[str, Any]) -> Mapping[str, Any]:
    def wait_for_signal(arbiter: Any, worker: Any) -> None:
        config["post_fork"](arbiter, worker)
        eventually(lambda: not arbiter.SIG_QUEUE.empty())

    return {**config, "post_fork": wait_for_signal}


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    configure_logging("counting", "json", "info")
    config = gunicorn_config("127.0.0.1", 0, directory, workers=2, threads=4)
    serve(lambda: make_app(directory), slow_to_boot(config) if "--slow-boot" in sys.argv else config)

"""Serves an application with granian, whose HTTP side is Rust: for the API, where the server is most of the cost.

Why and by how much: docs/decisions/0006-api-speed.md. Pages are served by gunicorn.
"""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask
from granian import Granian
from granian.constants import HTTPModes, Interfaces

from shared.platform.metrics import clear_metrics_dir, require_shared_directory
from shared.platform.process import listen

_STOP_SECONDS = 30
_LOOK_FOR_PARENT_EVERY_S = 1.0

# granian's own lines take the way of all others.
_LOGGING: dict[str, Any] = {
    "formatters": {},
    "handlers": {},
    "loggers": {"_granian": {"handlers": [], "propagate": True}},
}


def serve(
    make_app: Callable[[], Flask],
    host: str,
    port: int,
    *,
    workers: int,
    threads: int,
    metrics_dir: Path | None,
) -> None:
    """Serve until told to stop. Each worker makes its own application: `make_app` is called in there."""
    require_shared_directory(workers, metrics_dir)
    # granian's sockets share their port with whoever else does; two services on one port must be refused.
    listen(host, port).close()
    if metrics_dir:
        clear_metrics_dir(metrics_dir)
    # A forked worker would inherit locks and threads of its parent in whatever state they were.
    multiprocessing.set_start_method("spawn")
    server = Granian(
        "",
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=workers,
        blocking_threads=threads,
        respawn_failed_workers=True,
        workers_kill_timeout=_STOP_SECONDS,
        log_dictconfig=_LOGGING,
    )
    server.serve(target_loader=partial(_load, make_app, os.getpid()), wrap_loader=False)


def _load(make_app: Callable[[], Flask], parent: int) -> Flask:
    threading.Thread(target=_stop_without, args=(parent,), name="parent-watch", daemon=True).start()
    return make_app()


def _stop_without(parent: int) -> None:
    """A worker whose parent was killed would go on answering, beside those of the next start."""
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(_LOOK_FOR_PARENT_EVERY_S)
    logging.getLogger(__name__).warning("the parent process is gone; stopping")
    os.kill(os.getpid(), signal.SIGTERM)

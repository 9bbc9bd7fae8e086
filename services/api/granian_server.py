"""Serves the API with granian, whose HTTP part is written in Rust, because the server is most of an API call's cost.

The figures are in docs/decisions/0006-api-speed.md. Pages are served by gunicorn.
"""

import logging
import multiprocessing
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings

from services.api.load_shedding import LoadShedding, QueueProbe
from services.api.slow_clients import BodyLimit, watch_connections
from shared.platform.metrics import clear_metrics_dir, require_shared_directory
from shared.platform.process import listen
from shared.platform.web.app import REQUEST_LIMIT_S

_STOP_SECONDS = 30
_MAX_CONNECTIONS = 4096
"""Of each worker. Others wait in the kernel, without an answer, so there are enough for an overload."""
_CHECK_PARENT_EVERY_S = 1.0

# granian's own log goes through our logging.
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
    """Serve until told to stop. `make_app` is called in each worker. Raises PortNotUsableError or ValueError."""
    require_shared_directory(workers, metrics_dir)
    # granian's sockets share their port (SO_REUSEPORT), so a second service on the port has to be detected here.
    listen(host, port).close()
    if metrics_dir:
        clear_metrics_dir(metrics_dir)
    # Forked workers share what the parent has imported: 65 MB less, and ready half a second sooner than new processes.
    multiprocessing.set_start_method("fork")
    os.register_at_fork(after_in_child=_end_at_a_stop_signal)
    server = Granian(
        "",
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=workers,
        blocking_threads=threads,
        backlog=_MAX_CONNECTIONS,
        backpressure=_MAX_CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=round(1000 * REQUEST_LIMIT_S)),
        respawn_failed_workers=True,
        workers_kill_timeout=_STOP_SECONDS,
        log_dictconfig=_LOGGING,
    )
    server.serve(
        target_loader=partial(
            _load,
            make_app,
            threads=threads,
            address=(host, port),
            probe_path=f"/probe/{secrets.token_urlsafe()}",
            parent=os.getpid(),
        ),
        wrap_loader=False,
    )


def _load(
    make_app: Callable[[], Flask], *, threads: int, address: tuple[str, int], probe_path: str, parent: int
) -> LoadShedding:
    """Create the application of a worker, with the threads that watch over it."""
    probe = QueueProbe(address, probe_path)
    threading.Thread(target=_stop_when_orphaned, args=(parent,), name="parent-watch", daemon=True).start()
    threading.Thread(
        target=watch_connections, args=(address[1],), name="connection-watch", daemon=True
    ).start()
    threading.Thread(target=probe.run, name="queue-probe", daemon=True).start()
    # On connections that it accepted just before the signal, granian answers as long as requests come.
    _on_stop_signal(probe.stop)
    return LoadShedding(BodyLimit(make_app(), threads), probe)


def _end_at_a_stop_signal() -> None:
    """Undo the handlers of the parent, until granian has set those of a worker: it would be told to stop in vain."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def _stop_when_orphaned(parent: int) -> None:
    """Stop this worker when its parent was killed: it would serve beside the workers of the next start."""
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_CHECK_PARENT_EVERY_S)
    logging.getLogger(__name__).warning("the parent process is gone; stopping")
    os.kill(os.getpid(), signal.SIGTERM)


def _on_stop_signal(action: Callable[[], None]) -> None:
    """Call `action`, in a thread, whenever this process is told to stop. The handlers of the signals are granian's.

    Call this in the main thread.
    """
    received, sent = socket.socketpair()
    sent.setblocking(False)
    signal.set_wakeup_fd(sent.fileno())  # Python writes the numbers of signals there
    threading.Thread(
        target=_watch_signals, args=(received, sent, action), name="stop-watch", daemon=True
    ).start()


def _watch_signals(received: socket.socket, sent: socket.socket, action: Callable[[], None]) -> None:
    with received, sent:
        while True:
            if received.recv(1)[0] in (signal.SIGINT, signal.SIGTERM):
                action()

"""Serves /healthz, /readyz and /metrics from a thread, for processes that consume Kafka or run jobs."""

import socket
import threading
from collections.abc import Mapping

import waitress
from flask import Flask
from waitress import wasyncore

from shared.platform.database.pool import Database
from shared.platform.kafka.admin import KafkaReadiness
from shared.platform.process import PortNotUsableError, exit_with_error, listen
from shared.platform.settings import Settings
from shared.platform.web.app import create_app
from shared.platform.web.health import Check, database_checks


class OperationsServer:
    def __init__(self, app: Flask, listening: socket.socket) -> None:
        self.port: int = listening.getsockname()[1]
        self._connections: dict[int, object] = {}
        self._pulled = threading.Event()
        self._server = waitress.create_server(
            app, self._connections, sockets=[listening], threads=4, ident=None
        )
        self._thread = threading.Thread(target=self._server.run, name="operations-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, drop open connections, end the threads. A second call does nothing."""
        if self._thread.is_alive():
            # Inside its loop: closing sockets during a select() is an error there.
            self._server.trigger.pull_trigger(self._close_connections)
            self._pulled.set()
            self._thread.join()
            self._server.task_dispatcher.shutdown(timeout=1)

    def _close_connections(self) -> None:
        # A request that ends now wakes the loop, too: the pipe must not be closed before we have written to it.
        self._pulled.wait()
        wasyncore.close_all(self._connections, ignore_all=True)


def serve_operations(app: Flask, host: str, port: int) -> OperationsServer:
    """Listen at once, and raise PortNotUsableError if the port is taken; port 0 takes a free one."""
    return OperationsServer(app, listen(host, port))


def serve_worker_operations(
    service: str, settings: Settings, database: Database, own_checks: Mapping[str, Check]
) -> OperationsServer:
    """Serve the operations pages of a worker; ends the process with a clear text if the port cannot be used."""
    checks: dict[str, Check] = {
        **database_checks(settings, database),
        "kafka": KafkaReadiness(settings.kafka).check,
        **own_checks,
    }
    try:
        return serve_operations(
            create_app(service, checks, settings.metrics_dir), settings.http_host, settings.http_port
        )
    except PortNotUsableError as error:
        exit_with_error(service, error)

"""Runs services under gunicorn: its hooks, its limits, and its log through our logging."""

import logging
import os
import signal
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from shared.platform.encryption import KeysUnavailableError, NoSecretKeysError
from shared.platform.keys import check_keys
from shared.platform.metrics import clear_metrics_dir, forget_worker_gauges, require_shared_directory
from shared.platform.process import exit_with_error, start_process
from shared.platform.settings import CheckoutSettings, DashboardSettings, MonitorSettings, Settings
from shared.platform.web.buffered_worker import BufferedWorker

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  for the heartbeats of workers: on a slow disk, workers would seem to hang

KEEPALIVE_SECONDS = 5
"""How long an idle connection is kept. A proxy must close its own sooner."""


def gunicorn_config(
    host: str, port: int, metrics_dir: Path | None = None, workers: int = 2, threads: int = 8
) -> Mapping[str, object]:
    """Return settings for gunicorn; raises ValueError for several workers without a metrics directory to share."""
    require_shared_directory(workers, metrics_dir)

    def on_starting(arbiter: Any) -> None:
        # After an upgrade in place (USR2) the old workers still count there.
        if metrics_dir and not arbiter.master_pid:
            clear_metrics_dir(metrics_dir)

    def child_exit(_arbiter: Any, worker: Any) -> None:
        if metrics_dir:
            forget_worker_gauges(worker.pid, metrics_dir)

    return {
        "bind": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "workers": workers,
        "threads": threads,
        "worker_class": BufferedWorker,
        "worker_tmp_dir": str(_SHARED_MEMORY) if _SHARED_MEMORY.is_dir() else None,
        "timeout": 30,
        "graceful_timeout": 30,
        "keepalive": KEEPALIVE_SECONDS,
        "control_socket_disable": True,
        "forwarder_headers": "",  # a client of a proxy on this machine could set the path, and the start of each URL
        "logger_class": GunicornLog,
        "on_starting": on_starting,
        "post_fork": _keep_master_signals,
        "post_worker_init": _obey_signals_before_boot,
        "child_exit": child_exit,
    }


def _keep_master_signals(arbiter: Any, worker: Any) -> None:
    worker.master_signals = arbiter.SIG_QUEUE


def _obey_signals_before_boot(worker: Any) -> None:
    """Stop a worker whose stop signal came before its handlers were set: it is in a copy of the master's queue.

    Without this, stopping takes the whole graceful_timeout (benoitc/gunicorn#1910).
    """
    while not worker.master_signals.empty():
        if worker.master_signals.get_nowait() in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            os.kill(os.getpid(), signal.SIGTERM)


class GunicornLog(Logger):  # type: ignore[misc]
    """Leaves writing to the root logger."""

    def setup(self, cfg: Any) -> None:
        self.cfg = cfg
        self._access_log_enabled = True
        for logger in (self.error_log, self.access_log):
            logger.propagate = True

    def access(self, resp: Any, req: Any, environ: Any, request_time: timedelta) -> None:
        """Do nothing: shared.platform.web.middleware logs each request."""


def serve(make_app: Callable[[], Flask], config: Mapping[str, object]) -> None:
    """Serve until told to stop. Each worker creates its own application after the fork."""
    _Server(make_app, config).run()


class _Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, make_app: Callable[[], Flask], config: Mapping[str, object]) -> None:
        self._make_app = make_app
        self._config = config
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._config.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._make_app()


def run_page_service(
    service: str,
    make_worker_app: Callable[[], Flask],
    pool: Callable[[Settings], CheckoutSettings | DashboardSettings | MonitorSettings],
    *,
    uses_kafka: bool = False,
) -> None:
    """Run a service that serves pages; `pool` picks the group of settings with its workers and threads."""
    settings = start_process(service, uses_kafka=uses_kafka)
    try:
        check_keys(service, settings)
        config = gunicorn_config(
            settings.http_host,
            settings.http_port,
            settings.metrics_dir,
            workers=pool(settings).workers,
            threads=pool(settings).threads,
        )
    except (NoSecretKeysError, KeysUnavailableError, ValueError) as error:
        exit_with_error(service, error)
    serve(make_worker_app, config)
    logging.getLogger(f"services.{service}").info("stopped")

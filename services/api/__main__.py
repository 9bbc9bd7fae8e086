"""Runs the API: a parent process that listens, and workers that answer."""

import logging
import resource

from services.api.app import SERVICE, make_worker_app
from services.api.granian_server import serve
from shared.platform.process import PortNotUsableError, exit_with_error, start_process


def main() -> None:
    settings = start_process(SERVICE, uses_kafka=False)
    _allow_many_connections()
    try:
        serve(
            make_worker_app,
            settings.http_host,
            settings.http_port,
            workers=settings.api.workers,
            threads=settings.api.threads,
            metrics_dir=settings.metrics_dir,
        )
    except (PortNotUsableError, ValueError) as error:
        exit_with_error(SERVICE, error)
    logging.getLogger("services.api").info("stopped")


def _allow_many_connections() -> None:
    """Raise the limit of open files as far as this process may. Its workers inherit it."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


if __name__ == "__main__":
    main()

"""Runs the API: a parent process that listens, and workers that answer."""

import logging

from services.api.app import SERVICE, make_worker_app
from services.api.granian_server import serve
from shared.platform.process import PortNotUsableError, allow_many_connections, exit_with_error, start_process


def main() -> None:
    settings = start_process(SERVICE, uses_kafka=False)
    allow_many_connections()
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


if __name__ == "__main__":
    main()

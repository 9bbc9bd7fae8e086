"""The API's process: a parent that listens, and workers that answer."""

import logging

from services.api.app import SERVICE, make_worker_app
from services.api.granian_server import serve
from shared.platform.process import PortNotUsableError, begin, refuse


def main() -> None:
    settings = begin(SERVICE)
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
        refuse(SERVICE, error)
    logging.getLogger("services.api").info("stopped")


if __name__ == "__main__":
    main()

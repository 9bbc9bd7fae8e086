"""Runs the shop: one process with a fixed number of request threads and one worker thread."""

import logging
import signal
import sqlite3
import sys
from types import FrameType

import waitress

from .app import create_shop
from .database import DatabaseVersionError
from .settings import CredentialsError, SettingsError, read_settings

_THREADS = 16
"""Concurrent requests. At most four of them hang because of the endpoint switch, so the shop stays usable."""
_MAX_BYTES = 65_536


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        settings = read_settings()
        shop = create_shop(settings)
    except (SettingsError, CredentialsError, DatabaseVersionError, OSError, sqlite3.Error) as error:
        sys.exit(f"the shop cannot start: {error}")
    server = waitress.create_server(
        shop.app,
        host=settings.host,
        port=settings.port,
        threads=_THREADS,
        max_request_body_size=_MAX_BYTES,
        ident=None,
    )

    def stop(_signal: int, _frame: FrameType | None) -> None:
        shop.endpoint_switch.release_hanging()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    shop.worker.start()
    logging.getLogger(__name__).info("open at %s", settings.public_url)
    try:
        server.run()
    finally:
        shop.worker.stop()


if __name__ == "__main__":
    main()

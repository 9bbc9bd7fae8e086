"""The shop's process: one, with a bounded number of threads for requests, and one that works."""

import logging
import signal
import sqlite3
import sys
from types import FrameType

import waitress

from examples.shop.app import make_shop
from examples.shop.credentials import NoCredentialsError
from examples.shop.database import OtherVersionError
from examples.shop.settings import SettingsError, read_settings

_THREADS = 16
"""Requests at a time. Four of them at most can hang, by the switch behind the counter; the shop stays open."""
_MOST_BYTES = 65_536


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        settings = read_settings()
        shop = make_shop(settings)
    except (SettingsError, NoCredentialsError, OtherVersionError, OSError, sqlite3.Error) as error:
        sys.exit(f"the shop cannot start: {error}")
    server = waitress.create_server(
        shop.app,
        host=settings.host,
        port=settings.port,
        threads=_THREADS,
        max_request_body_size=_MOST_BYTES,
        ident=None,
    )

    def stop(_signal: int, _frame: FrameType | None) -> None:
        shop.endpoint.let_go()
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

"""Serves the checkout's pages to browsers, which disconnect during responses and keep connections open."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.checkout.app import make_app
from shared.platform.web.operations_server import serve_operations
from tests.checkout.world import CheckoutWorld


@contextmanager
def serving(world: CheckoutWorld) -> Iterator[CheckoutWorld]:
    """Serve the pages, not with Werkzeug: it leaks a file if a browser leaves during a download."""
    server = serve_operations(make_app(world.settings, world.service_database), "127.0.0.1", world.port)
    try:
        yield world
    finally:
        server.close()

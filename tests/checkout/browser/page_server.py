"""The checkout's pages for browsers, which leave in the middle of an answer and keep connections open."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.checkout.app import make_app
from shared.platform.web.operations_server import serve_operations
from tests.checkout.world import CheckoutWorld


@contextmanager
def serving(world: CheckoutWorld) -> Iterator[CheckoutWorld]:
    """Werkzeug's server forgets to close files when a browser leaves while an icon is still on its way."""
    server = serve_operations(make_app(world.settings, world.database), "127.0.0.1", world.port)
    try:
        yield world
    finally:
        server.close()

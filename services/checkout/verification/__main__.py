"""The process of the verifier: consumes checkout.verify and serves the operations pages."""

import logging
import sys

from services.checkout.dependencies import build_dependencies
from services.checkout.verification.verifier import MAX_CONCURRENT_INQUIRIES, Verifier, verifier_loop
from shared.platform.database.pool import Database
from shared.platform.encryption import KeysUnavailableError, NoSecretKeysError
from shared.platform.kafka.consumer_thread import ConsumerThread
from shared.platform.kafka.handlers import ThreadPoolHandler
from shared.platform.keys import check_keys
from shared.platform.process import exit_with_error, start_process, start_tracing, stop_on_signal
from shared.platform.web.operations_server import serve_worker_operations

SERVICE = "checkout-verifier"
_STOP_PATIENCE_S = 30

_log = logging.getLogger("services.checkout.verification")


def main() -> None:
    settings = start_process(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    stop = stop_on_signal()
    database = Database(settings.database, SERVICE)
    try:
        check_keys(SERVICE, settings)
        dependencies = build_dependencies(settings, database)
    except (NoSecretKeysError, KeysUnavailableError) as error:
        exit_with_error(SERVICE, error)
    verifier = Verifier(database, dependencies.providers, dependencies.side_effects)
    handler = ThreadPoolHandler(verifier.handle, MAX_CONCURRENT_INQUIRIES)
    thread = ConsumerThread("verify", verifier_loop(settings, handler), stop)
    server = serve_worker_operations(SERVICE, settings, database, {"verify": thread.loop.progress.check})
    thread.start()
    _log.info("started on port %d", server.port)
    stop.wait()
    _log.info("stopping")
    thread.loop.stop()
    thread.join(_STOP_PATIENCE_S)
    handler.close()
    server.close()
    database.close()
    sys.exit(thread.failed)


if __name__ == "__main__":
    main()

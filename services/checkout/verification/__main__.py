"""The verifier's process: a consumer of checkout.verify, and its operations pages."""

import logging
import sys

from services.checkout.dependencies import build_dependencies
from services.checkout.verification.verifier import Verifier, verifier_loop
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.encryption import NoSecretKeysError
from shared.platform.kafka.consumer_loop import ConsumerThread
from shared.platform.process import begin, refuse, stop_on_signal
from shared.platform.tracing.setup import start_tracing
from shared.platform.web.operations_server import serve_worker_pages

SERVICE = "checkout-verifier"
_STOP_PATIENCE_S = 30

_log = logging.getLogger("services.checkout.verification")


def main() -> None:
    settings = begin(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    stop = stop_on_signal()
    database = Database(settings.database, SERVICE, **STABLE_PLANS)
    try:
        dependencies = build_dependencies(settings, database)
    except NoSecretKeysError as error:
        refuse(SERVICE, error)
    verifier = Verifier(database, dependencies.providers, dependencies.side_effects)
    thread = ConsumerThread("verify", verifier_loop(settings, verifier), stop)
    server = serve_worker_pages(SERVICE, settings, database, {"verify": thread.loop.progress.check})
    thread.start()
    _log.info("started on port %d", server.port)
    stop.wait()
    _log.info("stopping")
    thread.loop.stop()
    thread.join(_STOP_PATIENCE_S)
    verifier.close()
    server.close()
    database.close()
    sys.exit(thread.failed)


if __name__ == "__main__":
    main()

"""The verifier's process: a consumer of checkout.verify, and its operations pages."""

import logging
import sys

from services.checkout.verifying import AT_ONCE, Verifier
from services.checkout.workshop import set_up
from shared.db.connections import STEADY_PLANS
from shared.db.pool import Database
from shared.kafka.dead_letters import KafkaDeadLetterBox
from shared.kafka.handlers import BatchHandler
from shared.kafka.loop import ConsumerLoop
from shared.kafka.role_thread import RoleThread
from shared.process import begin, refuse, stop_on_signal
from shared.sealing import NoSecretKeysError
from shared.settings import Settings
from shared.topics import CHECKOUT_VERIFY
from shared.tracing.setup import start_tracing
from shared.web.worker_pages import serve_worker_pages

SERVICE = "checkout-verifier"
_STOP_PATIENCE_S = 30

_log = logging.getLogger("services.checkout.verifier")


def verifier_loop(settings: Settings, verifier: Verifier) -> ConsumerLoop:
    assert CHECKOUT_VERIFY.group is not None
    handler = BatchHandler(verifier.verify, AT_ONCE)
    dead_letters = KafkaDeadLetterBox(settings.kafka)
    return ConsumerLoop(settings.kafka, CHECKOUT_VERIFY.group, [CHECKOUT_VERIFY.name], handler, dead_letters)


def main() -> None:
    settings = begin(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    stop = stop_on_signal()
    database = Database(settings.database, SERVICE, **STEADY_PLANS)
    try:
        workshop = set_up(settings, database)
    except NoSecretKeysError as error:
        refuse(SERVICE, error)
    verifier = Verifier(database, workshop.accounts, workshop.following)
    thread = RoleThread("verify", verifier_loop(settings, verifier), stop)
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

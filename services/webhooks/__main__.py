"""Runs the webhook service: its consumers, each in a thread, and its health and metrics pages.

Usage: python -m services.webhooks [intake] [deliver] [slow] [resend] [delay]
Without a name, all consumers run.
"""

import gc
import logging
import sys

from services.webhooks.consumers import ConsumerFactory, UnknownConsumerError, select_consumers
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.encryption import KeysUnavailableError, NoSecretKeysError
from shared.platform.kafka.consumer_thread import ConsumerThread
from shared.platform.keys import check_keys
from shared.platform.process import (
    allow_many_connections,
    exit_with_error,
    start_process,
    start_tracing,
    stop_on_signal,
)
from shared.platform.web.operations_server import serve_worker_operations

SERVICE = "webhooks"
_STOP_TIMEOUT_S = 30

_log = logging.getLogger("services.webhooks")


def main() -> None:
    settings = start_process(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    stop = stop_on_signal()
    allow_many_connections()
    database = Database(settings.database, SERVICE, **STABLE_PLANS)
    try:
        consumers = select_consumers(sys.argv[1:])
        check_keys(SERVICE, settings)
        factory = ConsumerFactory(settings, database)
    except (UnknownConsumerError, NoSecretKeysError, KeysUnavailableError) as error:
        exit_with_error(SERVICE, error)
    threads = [ConsumerThread(consumer.name, factory.build_loop(consumer), stop) for consumer in consumers]
    checks = {thread.name: thread.loop.progress.check for thread in threads}
    server = serve_worker_operations(SERVICE, settings, database, checks)
    _tune_interpreter()
    for thread in threads:
        thread.start()
    _log.info("started on port %d", server.port)
    stop.wait()
    _log.info("stopping")
    for thread in threads:
        thread.loop.stop()
    for thread in threads:
        thread.join(_STOP_TIMEOUT_S)
    factory.close()
    server.close()
    database.close()
    sys.exit(any(thread.failed for thread in threads))


def _tune_interpreter() -> None:
    gc.freeze()
    # Thousands of tries are alive at once, and none is part of a reference cycle, so collecting often is useless.
    gc.set_threshold(20_000, 50, 100)
    # Switch threads often: requests in flight must not wait while another thread prepares a batch.
    sys.setswitchinterval(0.001)


if __name__ == "__main__":
    main()
